import os
import platform

from softcount.measure.machine import machine, processor


def test_the_processor_is_named_by_its_model_or_else_by_its_architecture(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: Some CPU: fast\n\nprocessor\t: 1\nmodel name\t: Other\n"
    )
    assert processor(cpuinfo) == "Some CPU: fast"
    cpuinfo.write_text("processor\t: 0\n")
    fallback = platform.processor() or platform.machine()
    assert processor(cpuinfo) == processor(tmp_path / "missing") == fallback


def test_a_machine_is_described_by_all_that_changes_numbers():
    text = machine()
    assert text.startswith(processor())
    assert f"{os.cpu_count()} cores, Python {platform.python_version()}, torch " in text
