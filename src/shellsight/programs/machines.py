"""Programs that show or change this machine: its services, disks' mounts, users, network and processes."""

from __future__ import annotations

from collections.abc import Mapping

from shellsight.report import Effect, Standing
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Judge, Outcome, always, dangerous, safe, unknown
from shellsight.words.form import Operands, form
from shellsight.words.verbs import Verbs, each, far, look


def system(reason: str, *effects: Effect) -> Judge:
    """A judge for programs that change the machine; their version alone only looks."""

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].certain and call.args[0].text in {"--version", "-V", "--help"}:
            return safe("shows its version or help")
        return dangerous(reason, (), *effects)

    return judge


_SYSTEMCTL = Verbs(
    looking={
        "status": look("la --no-pager --all --full", "n --lines"),
        "is-active": look("q"),
        "is-enabled": look("q"),
        "is-failed": look("q"),
        "list-units": look("a --all --no-pager --failed", "--type --state"),
        "list-unit-files": look("--no-pager", "--type --state"),
        "list-timers": look("a --all --no-pager"),
        "--version": look(),
    },
    far=far(
        (
            "start stop restart reload enable disable mask unmask kill daemon-reload daemon-reexec isolate "
            "poweroff reboot halt suspend hibernate edit set-property link revert preset set-default "
            "reset-failed set-environment unset-environment import-environment show-environment cat show"
        ),
        "acts on services",
    ),
    effects=frozenset({Effect.SYSTEM}),
    leading=frozenset({"--user", "--no-pager"}),
)


def openssl(call: Call) -> Outcome:
    """openssl: versions and looks at certificates aside, keys and secrets."""
    first = call.args[0].text if call.args else ""
    if first in {"version", "help", "list"}:
        return safe("shows its version")
    source = "network" if first == "s_client" else "decoder"
    return Outcome(
        Standing.DANGEROUS, "handles keys, codes or connections", (), frozenset({Effect.SECRETS}), source=source
    )


def journal(call: Call) -> Outcome:
    """`journalctl`: shows logs, or deletes them."""
    if any(
        arg.text.startswith(prefixes("--vacuum --rotate --flush --setup --sync --relinquish --update --cursor-file"))
        for arg in call.args
    ):
        return dangerous("deletes logs", (), Effect.SYSTEM)
    return unknown("shows this machine's logs")


def addresses(call: Call) -> Outcome:
    """`ip` and `ifconfig`: show, or change the network."""
    texts = [arg.text for arg in call.args]
    plain = [text for text in texts if not text.startswith("-")]
    if call.name == "ifconfig" and len(plain) <= 1 and all(arg.certain for arg in call.args):
        return safe("shows network interfaces")
    words = names("addr address a link l route r neigh n rule")
    if (
        call.name == "ip"
        and all(arg.certain for arg in call.args)
        and plain
        and plain[0] in words
        and (len(plain) == 1 or plain[1] in {"show", "list", "ls"})
        and not any(text.startswith(("-b", "-n", "--b")) and text not in {"-br", "-brief"} for text in texts)
    ):
        return safe("shows network settings")
    return dangerous("changes the network", (), Effect.SYSTEM)


def keys(call: Call) -> Outcome:
    """Programs that make, show and use keys: only their version looks."""
    if len(call.args) == 1 and call.args[0].text == "--version":
        return safe("shows its version")
    return Outcome(Standing.DANGEROUS, "handles keys", (), frozenset({Effect.SECRETS}), source="decoder")


def calculator(call: Call) -> Outcome:
    """`bc`: computes what is typed; its operands are files of statements."""
    return unknown("computes what it is fed") if call.args else safe("computes")


def crontab(call: Call) -> Outcome:
    """`crontab`: jobs for later; `-l` shows them."""
    if [arg.text for arg in call.args] == ["-l"]:
        return safe("shows jobs")
    return dangerous("plans or deletes jobs that run later", (), Effect.SYSTEM)


_PROCESS, _SYSTEM, _PRIVILEGE, _SECRETS = Effect.PROCESS, Effect.SYSTEM, Effect.PRIVILEGE, Effect.SECRETS
TABLE: Mapping[str, Judge] = {
    **each(
        (
            "ssh-keygen ssh-add ssh-agent ssh-keyscan gpg gpg2 age age-keygen sops keytool certutil security "
            "secret-tool keyring git-credential-osxkeychain"
        ),
        keys,
    ),
    "systemctl": _SYSTEMCTL.judge,
    "openssl": openssl,
    "uudecode": always(Outcome(Standing.DANGEROUS, "decodes into a file", source="decoder")),
    "journalctl": journal,
    "ip": addresses,
    "ifconfig": addresses,
    "crontab": crontab,
    **each("killall pkill xkill skill snice renice", system("ends or signals processes", _PROCESS)),
    **each(
        (
            "reboot shutdown halt poweroff init telinit service rc-service launchctl initctl chkconfig "
            "update-rc.d supervisorctl pm2 swapon swapoff mount umount losetup cryptsetup lvm lvremove vgremove "
            "pvremove zfs zpool mdadm modprobe insmod rmmod depmod sysctl dmesg kexec grub-install update-grub "
            "efibootmgr nvram bless csrutil spctl defaults scutil networksetup pmset tmutil softwareupdate "
            "systemsetup ldconfig update-alternatives loginctl machinectl hostnamectl timedatectl localectl "
            "netplan nmcli ufw firewall-cmd iptables ip6tables nft ebtables tc route hwclock adjtimex quotacheck "
            "setenforce semanage restorecon auditctl debugfs tune2fs resize2fs e2fsck fsck xfs_repair setterm "
            "chvt loadkeys stty reset at batch atq atrm anacron systemd-analyze systemd-tmpfiles logrotate "
            "logger wall write mesg bpftrace perf dtrace gcore coredumpctl"
        ),
        system("changes this machine", _SYSTEM),
    ),
    **each(
        (
            "passwd chpasswd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup "
            "delgroup gpasswd newgrp chage vipw visudo chsh chfn setcap getcap capsh dscl sysadminctl sudoedit sg"
        ),
        system("changes users or rights", _PRIVILEGE),
    ),
    **each("dpkg rpm dpkg-deb installer hdiutil pkgutil", system("installs software", Effect.INSTALL)),
    **each("tmux screen byobu zellij dtach abduco", system("keeps programs running elsewhere", _PROCESS)),
    **each(
        "xclip xsel pbcopy pbpaste wl-copy wl-paste clip open xdg-open start explorer",
        system("reaches outside the terminal", _SYSTEM),
    ),
    **each(
        (
            "say notify-send osascript-run xdotool ydotool import scrot screencapture ffmpeg convert magick "
            "mogrify gs exiftool qemu-system-x86_64 virsh VBoxManage lxc incus multipass limactl minikube kind "
            "k3s k9s"
        ),
        system("acts outside the project", _SYSTEM),
    ),
    "dmesg": always(unknown("shows this machine's messages")),
    **each(
        "netstat ss",
        form(
            "tuplnarseiomgHWx4610K".replace("K", "")
            + " --tcp --udp --listening --numeric --processes --all --summary --version --help",
            "",
            Operands.TEXT,
        ),
    ),
    "lsmod": form("", "", Operands.NONE),
    "lspci": form("vnkt", "", Operands.NONE),
    "lsusb": form("vt", "", Operands.NONE),
    "last": form("adFix", "n", Operands.TEXT, digits=True),
    "top": form("bHic", "npduol", Operands.TEXT),
    "htop": form("C", "du", Operands.NONE),
    "iostat": form("cdhkmNptxyz", "", Operands.TEXT, digits=True),
    "mpstat": form("A", "P", Operands.TEXT),
    "clear": form("x", "T", Operands.NONE),
    "factor": form("", "", Operands.TEXT),
    "numfmt": form("z", "d --from --to --suffix --format --field --padding", Operands.TEXT),
    "shuf": form("erz", "ni --head-count --input-range", Operands.READ),
    "yes": always(safe("repeats a word")),
    "stat64": form(),
    "envsubst": always(dangerous("shows variables of the environment", (), _SECRETS)),
    "bc": calculator,
    "dc": always(dangerous("may run commands", (), Effect.RUNS_CODE)),
}
