"""Files, disks, archives, this machine and others: what shows, what changes, and what nobody may do."""

from __future__ import annotations

import pytest

from shellsight.report import PathEffect, PathUse, Standing
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        *("mkfs --version", "mkfs.ext4 -V", "fdisk --version", "wipefs --help"),
        *("openssl version", "reboot --version", "passwd --help", "ssh -V", "scp --version", "gh --version"),
        *("crontab -l", "ifconfig", "ifconfig en0", "psql --version", "sqlite3 -version", "redis-cli --help"),
        *("kubectl version --client", "kubectl version --client -o json", "echo x | tee", "tar --version"),
    ],
)
def test_versions_and_lists_only_look(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mkfs.ext4 /dev/sda1", Standing.FORBIDDEN),
        ("mkfs", Standing.FORBIDDEN),
        ("fdisk /dev/sda", Standing.FORBIDDEN),
        ("fdisk -l", Standing.UNKNOWN),
        ("sfdisk --list", Standing.UNKNOWN),
        ("parted -l", Standing.UNKNOWN),
        ("wipefs -l", Standing.FORBIDDEN),
        ("rm /dev/sda", Standing.FORBIDDEN),
        ("cp disk.img /dev/sda", Standing.FORBIDDEN),
        ("mv disk.img /dev/nvme0n1", Standing.FORBIDDEN),
    ],
)
def test_disks_are_never_written(line: str, expected: Standing) -> None:
    assert standing(line) is expected


@pytest.mark.parametrize(
    "line",
    [
        *("reboot", "crontab -r", "crontab jobs", "ifconfig en0 down", "kubectl version", "openssl enc -d -in a"),
        *("psql -c 'drop table x'", "psql --version -c x", "ssh -V host", "scp a host:b", "reboot --version now"),
    ],
)
def test_what_changes_machines_or_reaches_them_is_dangerous(line: str) -> None:
    assert standing(line) >= Standing.DANGEROUS


@pytest.mark.parametrize("line", ["cp", "mv", "cp -r", "tar", "cp a $x"])
def test_copying_and_packing_without_knowing_where_is_unknown(line: str) -> None:
    assert standing(line) is Standing.UNKNOWN


def test_rights_as_another_file_has_them_are_the_operands_alone() -> None:
    told = report("chmod --reference=a.sh b.sh c.sh")
    assert told.standing is Standing.ORDINARY
    assert PathUse("/repo/b.sh", PathEffect.WRITE) in told.paths
    assert PathUse("/repo/c.sh", PathEffect.WRITE) in told.paths


def test_a_tee_without_files_hands_names_of_files_on() -> None:
    assert standing("git ls-files '*.py' | tee | xargs wc -l") is Standing.SAFE
    assert standing("git ls-files '*.py' | tee /etc/x") > Standing.SAFE
