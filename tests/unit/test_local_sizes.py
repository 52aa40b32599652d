"""What `make sizes` prints is measured."""

from infra.local import sizes


def test_an_import_is_timed_in_an_interpreter_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "RUNS", 3)
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.05)\n")
    assert 0.05 <= sizes.import_seconds("slow", [tmp_path]) < 5


def test_a_size_is_of_every_file_below(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "below" / "b").write_bytes(b"345")
    assert sizes.size(tmp_path) == 5
