"""What `make sizes` prints is measured."""

from infra.local import sizes


def test_a_size_is_of_every_file_below(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "below" / "b").write_bytes(b"3" * 10_000)
    measured = sizes.size(tmp_path)
    assert measured.unzipped == 10_002
    assert 0 < measured.zipped < 1_000


def test_layers_add_up():
    assert sizes.Size(1, 2) + sizes.Size(30, 40) == sizes.Size(31, 42)
