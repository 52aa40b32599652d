"""Fill the one gap of the local cloud: it deploys SAM's HTTP API without its routes.

SAM writes routes, integrations and authorizers as an OpenAPI document into the API's Body, which
AWS imports and the emulator does not. So they are read from the processed template, the very
document that AWS would get, and made one by one through the emulator's API Gateway.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from types_boto3_apigatewayv2.client import ApiGatewayV2Client

# As much of OpenAPI and CloudFormation as SAM writes.
type Json = Any
METHODS = {"get", "post", "put", "patch", "delete", "head", "options"}


def create(
    client: ApiGatewayV2Client, api_id: str, body: Json, values: Mapping[str, str]
) -> list[str]:
    """Make everything in the document anew, and return the routes; `values` are what its references
    stand for."""
    document = resolve(body, values)
    _remove_all(client, api_id)
    schemes = document.get("components", {}).get("securitySchemes", {})
    authorizers = {
        name: _create_authorizer(client, api_id, name, scheme["x-amazon-apigateway-authorizer"])
        for name, scheme in schemes.items()
    }
    return [
        _create_route(client, api_id, f"{method.upper()} {path}", operation, authorizers)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in METHODS
    ]


def resolve(value: Json, values: Mapping[str, str]) -> Json:
    """Replace the references of CloudFormation by what they stand for."""
    match value:
        case {"Ref": name}:
            return values[name]
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([^}]+)}", lambda found: values[found[1]], text)
        case dict():
            foreign = [key for key in value if key.startswith("Fn::")]
            if foreign:
                raise NotImplementedError(f"{foreign[0]} in the HTTP API's document")
            return {key: resolve(inner, values) for key, inner in value.items()}
        case list():
            return [resolve(inner, values) for inner in value]
        case _:
            return value


def _create_authorizer(client: ApiGatewayV2Client, api_id: str, name: str, declared: Json) -> str:
    created = client.create_authorizer(
        ApiId=api_id,
        Name=name,
        AuthorizerType="JWT",
        IdentitySource=[declared["identitySource"]],
        JwtConfiguration={
            "Issuer": declared["jwtConfiguration"]["issuer"],
            "Audience": declared["jwtConfiguration"]["audience"],
        },
    )
    return created["AuthorizerId"]


def _create_route(
    client: ApiGatewayV2Client,
    api_id: str,
    route: str,
    operation: Json,
    authorizers: Mapping[str, str],
) -> str:
    declared = operation["x-amazon-apigateway-integration"]
    integration = client.create_integration(
        ApiId=api_id,
        IntegrationType="AWS_PROXY",
        IntegrationUri=declared["uri"],
        PayloadFormatVersion=declared["payloadFormatVersion"],
    )
    target = f"integrations/{integration['IntegrationId']}"
    # SAM writes `security: [{<authorizer>: [<scope> …]}]`, and NONE for an open route.
    [(name, scopes)] = operation["security"][0].items()
    if name == "NONE":
        client.create_route(ApiId=api_id, RouteKey=route, Target=target)
        return route
    jwt: Literal["JWT"] = "JWT"
    client.create_route(
        ApiId=api_id,
        RouteKey=route,
        Target=target,
        AuthorizationType=jwt,
        AuthorizerId=authorizers[name],
        AuthorizationScopes=scopes,
    )
    return route


def _remove_all(client: ApiGatewayV2Client, api_id: str) -> None:
    for route in client.get_routes(ApiId=api_id)["Items"]:
        client.delete_route(ApiId=api_id, RouteId=route["RouteId"])
    for integration in client.get_integrations(ApiId=api_id)["Items"]:
        client.delete_integration(ApiId=api_id, IntegrationId=integration["IntegrationId"])
    for authorizer in client.get_authorizers(ApiId=api_id)["Items"]:
        client.delete_authorizer(ApiId=api_id, AuthorizerId=authorizer["AuthorizerId"])
