"""Programs that change this machine, its users and its services."""

from __future__ import annotations

from attrs import evolve

from shellsight.programs.machines import addresses, crontab, journal, keys, openssl, system
from shellsight.programs.row import Row
from shellsight.report import Effect
from shellsight.words.call import always, dangerous, unknown
from shellsight.words.form import form
from shellsight.words.verbs import look, verbs

ROWS = (
    Row(
        (
            "ssh-keygen ssh-add ssh-agent ssh-keyscan gpg gpg2 age age-keygen sops keytool certutil security "
            "secret-tool keyring git-credential-osxkeychain"
        ),
        keys,
        ('* -f ~/.ssh/id_rsa -N "" -y => dangerous: writes /home/me/.ssh/id_rsa, secrets', "* --version => safe"),
    ),
    Row(
        "systemctl",
        verbs(
            looking={
                "status": look(flags="la --no-pager --all --full", values="n --lines"),
                "is-active": look(flags="q"),
                "is-enabled": look(flags="q"),
                "is-failed": look(flags="q"),
                "list-units": look(flags="a --all --no-pager --failed", values="--type --state"),
                "list-unit-files": look(flags="--no-pager", values="--type --state"),
                "list-timers": look(flags="a --all --no-pager"),
                "--version": look(),
            },
            far={
                "acts on services": (
                    "start stop restart reload enable disable mask unmask kill daemon-reload daemon-reexec "
                    "isolate poweroff reboot halt suspend hibernate edit set-property link revert preset "
                    "set-default reset-failed set-environment unset-environment import-environment "
                    "show-environment cat show"
                )
            },
            effects=(Effect.SYSTEM,),
            leading="--no-pager --user",
        ),
        ("systemctl show-environment => dangerous: system", "systemctl => unknown", "systemctl --failed => safe"),
        looks="--failed, list-sockets",
    ),
    Row(
        "openssl",
        openssl,
        (
            "openssl version => safe",
            "openssl enc -d -in x -out ~/.bashrc => dangerous: writes /home/me/.bashrc, secrets",
        ),
    ),
    Row(
        "uudecode",
        always(evolve(dangerous("decodes into a file"), source="decoder")),
        ("uudecode payload.uu => dangerous",),
    ),
    Row("journalctl", journal, ("journalctl --vacuum-time=1s => dangerous: system", "journalctl => unknown")),
    Row("ip ifconfig", addresses, ("* netns exec x rm -rf / => dangerous: writes /, system", "* -br a => safe")),
    Row("crontab", crontab, ("crontab -l => safe", "crontab evil.cron => dangerous: system")),
    Row(
        "killall pkill xkill skill snice renice",
        system("ends or signals processes", Effect.PROCESS),
        ("* python3 => dangerous: process", "* --version => safe"),
    ),
    Row(
        (
            "reboot shutdown halt poweroff init telinit service rc-service initctl chkconfig update-rc.d "
            "supervisorctl pm2 swapoff umount losetup cryptsetup lvm lvremove vgremove pvremove zfs zpool mdadm "
            "modprobe insmod rmmod depmod kexec grub-install update-grub efibootmgr nvram bless csrutil spctl "
            "defaults scutil networksetup tmutil softwareupdate systemsetup update-alternatives machinectl "
            "netplan nmcli ufw firewall-cmd iptables ip6tables nft ebtables tc route hwclock adjtimex quotacheck "
            "setenforce semanage restorecon auditctl debugfs tune2fs resize2fs e2fsck fsck xfs_repair setterm "
            "chvt loadkeys reset at batch atq atrm anacron systemd-analyze systemd-tmpfiles logrotate logger wall "
            "write mesg bpftrace perf dtrace gcore coredumpctl"
        ),
        system("changes this machine", Effect.SYSTEM),
        (
            "* => dangerous: system",
            "* --version => safe",
            "* docs/bench.md with its plots, and README's figures => unknown",
        ),
    ),
    Row(
        "launchctl",
        system("changes this machine", Effect.SYSTEM),
        ("launchctl bootout system => dangerous: system", "launchctl --version => safe"),
        looks="list",
    ),
    Row(
        "swapon",
        system("changes this machine", Effect.SYSTEM),
        ("swapon /x => dangerous: writes /x, system", "swapon --version => safe"),
        looks="--show, -s",
    ),
    Row(
        "mount",
        system("changes this machine", Effect.SYSTEM),
        ("mount => safe", "mount /dev/sda1 /mnt => dangerous: writes /mnt, system"),
        looks=", -l",
    ),
    Row(
        "sysctl",
        system("changes this machine", Effect.SYSTEM),
        ("sysctl -n hw.ncpu => safe", "sysctl -w kernel.panic=1 => dangerous: system"),
        asks=r"-n|-a|(?:kern|kernel|hw|vm|machdep|fs|net)(?:\.[a-z0-9_]+)+",
    ),
    Row("dmesg", always(unknown("shows this machine's messages")), ("dmesg -C => unknown",)),
    Row(
        "pmset",
        system("changes this machine", Effect.SYSTEM),
        ("pmset sleepnow => dangerous: system", "pmset --version => safe"),
        looks="-g",
    ),
    Row(
        "ldconfig",
        system("changes this machine", Effect.SYSTEM),
        ("ldconfig -p => safe", "ldconfig /repo/evil => dangerous: writes evil, system"),
        looks="-p, --print-cache",
    ),
    Row(
        "loginctl",
        system("changes this machine", Effect.SYSTEM),
        ("loginctl enable-linger => dangerous: system", "loginctl => safe"),
        looks=", list-sessions, list-users",
    ),
    Row(
        "hostnamectl localectl",
        system("changes this machine", Effect.SYSTEM),
        ("* set-hostname evil => dangerous: system", "* --version => safe"),
        looks=", status",
    ),
    Row(
        "timedatectl",
        system("changes this machine", Effect.SYSTEM),
        ("timedatectl => safe", "timedatectl set-time 2020-01-01 => dangerous: system"),
        looks=", status, show",
    ),
    Row(
        "stty",
        system("changes this machine", Effect.SYSTEM),
        ("stty size => safe", "stty -F /dev/tty1 raw => dangerous: system"),
        looks="size, -a",
    ),
    Row(
        (
            "passwd chpasswd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup "
            "gpasswd newgrp chage vipw visudo chsh chfn setcap getcap capsh dscl sysadminctl sudoedit sg"
        ),
        system("changes users or rights", Effect.PRIVILEGE),
        ("* -d root => dangerous: privilege", "* --help => safe"),
    ),
    Row(
        "dpkg",
        system("installs software", Effect.INSTALL),
        ("dpkg -S /usr/bin/env => safe", "dpkg -i evil.deb => dangerous: install"),
        asks=r"-[lLSs]|--list|--listfiles|--search|--status|--print-architecture|--get-selections|--version",
        about=r"/usr(/[A-Za-z0-9._+-]+)+",
    ),
    Row(
        "rpm",
        system("installs software", Effect.INSTALL),
        ("rpm -q bash => safe", "rpm -e bash => dangerous: install"),
        asks=r"-q[aildcR]*|--version",
    ),
    Row(
        "dpkg-deb installer hdiutil pkgutil",
        system("installs software", Effect.INSTALL),
        ("* --version => safe", "* a.txt => dangerous: install"),
    ),
    Row(
        "tmux",
        system("keeps programs running elsewhere", Effect.PROCESS),
        ("tmux ls => safe", 'tmux new-session -d "rm -rf ~/x" => dangerous: process'),
        looks="ls, list-sessions, list-windows, list-panes, list-windows -a, list-panes -a, -V",
    ),
    Row(
        "screen",
        system("keeps programs running elsewhere", Effect.PROCESS),
        ("screen -ls => safe", "screen -dm rm -rf ~/x => dangerous: writes /home/me/x, process"),
        looks="-ls, -list, -v",
    ),
    Row(
        "byobu zellij dtach abduco",
        system("keeps programs running elsewhere", Effect.PROCESS),
        ("* --version => safe", "* a.txt => dangerous: process"),
    ),
    Row(
        "xclip xsel pbcopy pbpaste wl-copy wl-paste clip open xdg-open start explorer",
        system("reaches outside the terminal", Effect.SYSTEM),
        ("* -o -selection clipboard => dangerous: system", "* --version => safe"),
    ),
    Row(
        (
            "say notify-send osascript-run xdotool ydotool import scrot screencapture mogrify gs "
            "qemu-system-x86_64 virsh VBoxManage lxc incus multipass limactl k3s"
        ),
        system("acts outside the project", Effect.SYSTEM),
        ("* floor => dangerous: system", "* --version => safe"),
    ),
    Row(
        "ffmpeg",
        system("acts outside the project", Effect.SYSTEM),
        ("ffmpeg => dangerous: system", "ffmpeg --version => safe"),
        looks="-version, -hide_banner -version, --version",
    ),
    Row(
        "convert magick",
        system("acts outside the project", Effect.SYSTEM),
        ("* --version => safe", "* a.txt => dangerous: system"),
        looks="-version, --version",
    ),
    Row(
        "exiftool",
        system("acts outside the project", Effect.SYSTEM),
        ("exiftool => dangerous: system", "exiftool --version => safe"),
        looks="-ver",
    ),
    Row(
        "minikube kind k9s",
        system("acts outside the project", Effect.SYSTEM),
        ("* => dangerous: system", "* --version => safe"),
        looks="version, --version",
    ),
    Row("stat64", form(), ("stat64 => safe", "stat64 --version => unknown")),
)
