"""Programs that reach other machines, containers, clusters and services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shellsight.report import Effect, PathEffect, PathUse, Standing
from shellsight.words.arguments import Arg, names, options
from shellsight.words.call import Call, Inner, Judge, Outcome, safe
from shellsight.words.places import uses
from shellsight.words.verbs import Verbs, each, far, look

_NETWORK = frozenset({Effect.NETWORK})


def network(source: str = "network") -> Judge:
    """A judge for programs that reach the network; what they print came from there."""

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].certain and call.args[0].text in {"--version", "-V", "--help"}:
            return safe("shows its version or help")
        paths = tuple(use for arg in call.args for use in _files(call, arg))
        return Outcome(Standing.DANGEROUS, "reaches the network", paths, _NETWORK, source=source)

    return judge


def _files(call: Call, arg: Arg) -> Iterator[PathUse]:
    text = arg.text.rpartition("@")[2] if "@" in arg.text else arg.text
    if arg.certain and text.startswith(("/", "~", "./", "../", ".")) and "://" not in text:
        yield from uses(call, Arg(text), PathEffect.READ)


def remote_shell(call: Call) -> Outcome:
    """`ssh HOST COMMAND`: the command runs elsewhere, and is looked at all the same."""
    if len(call.args) == 1 and call.args[0].text == "-V":
        return safe("shows its version")
    reading = options("1246AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", first=True).read(call.args)
    rest = reading.operands[1:]
    inner = ()
    if rest and all(arg.certain for arg in rest):
        code = " ".join(arg.text for arg in rest)
        inner = (
            Inner(code=code, floor=Standing.DANGEROUS, reason="runs on another machine", effects=_NETWORK, cwd=""),
        )
    return Outcome(
        Standing.DANGEROUS, "reaches another machine", (), _NETWORK, inline_code=True, inner=inner, source="network"
    )


_DOCKER_PS = look("aqls --all --quiet --latest --size --no-trunc", "fn --filter --format --last")
_DOCKER_LS = look("aq --all --quiet --no-trunc --digests --tree", "f --filter --format")
_DOCKER_FAR = {
    **far(
        (
            "run exec create start stop restart kill rm rmi pull push build tag commit cp load save import "
            "export login logout attach update rename pause unpause wait swarm stack service node secret config "
            "plugin trust buildx builder deploy scan scout init debug"
        ),
        "acts on containers and images",
    ),
    **far("prune", "deletes what is not used"),
}
_DOCKER = Verbs(
    looking={
        "ps": _DOCKER_PS,
        "images": _DOCKER_LS,
        "version": look("", "f --format"),
        "info": look("", "f --format"),
        "top": look(),
        "port": look(),
        "history": look("qH --no-trunc --quiet", "--format"),
        "stats": look("a --no-stream --all --no-trunc", "--format"),
        "diff": look(),
        "container": Verbs(
            looking={
                "ls": _DOCKER_PS,
                "list": _DOCKER_PS,
                "ps": _DOCKER_PS,
                "top": look(),
                "port": look(),
                "stats": look("--no-stream"),
            },
            far=_DOCKER_FAR,
        ).judge,
        "image": Verbs(
            looking={"ls": _DOCKER_LS, "list": _DOCKER_LS, "history": look("q --no-trunc")}, far=_DOCKER_FAR
        ).judge,
        "volume": Verbs(looking={"ls": _DOCKER_LS}, far=_DOCKER_FAR).judge,
        "network": Verbs(looking={"ls": _DOCKER_LS}, far=_DOCKER_FAR).judge,
        "context": Verbs(looking={"ls": look(), "show": look()}, far=_DOCKER_FAR).judge,
        "system": Verbs(looking={"df": look("v --verbose", "--format")}, far=_DOCKER_FAR).judge,
        "compose": Verbs(
            looking={
                "ps": look("aq --all --quiet --services", "--format --status --filter"),
                "ls": look("aq --all"),
                "images": look("q"),
                "version": look("--short"),
                "top": look(),
            },
            far=far(
                (
                    "up down start stop restart kill rm run exec build pull push create cp pause unpause watch "
                    "logs config scale events port"
                ),
                "acts on containers",
            ),
        ).judge,
    },
    far={**_DOCKER_FAR, **far("logs inspect", "may show secrets")},
    versions=frozenset({"--version", "-v", "--help", "version", "info"}),
)


def _client_version(call: Call) -> Outcome:
    """`kubectl version`: asks the cluster too, unless `--client` is given."""
    if not any(arg.text in {"--client", "--client=true"} for arg in call.args):
        return Outcome(Standing.DANGEROUS, "asks the cluster", (), _NETWORK)
    return look("--client --short", "o --output", loose="--client")(call)


_KUBECTL = Verbs(
    looking={"version": _client_version},
    versions=names("--help -h help"),
    far=far(
        (
            "get describe api-resources api-versions explain logs top cluster-info delete apply "
            "create edit patch replace scale rollout exec cp "
            "port-forward proxy drain cordon uncordon taint label annotate run expose set "
            "autoscale attach debug "
            "config auth certificate diff kustomize wait events"
        ),
        "acts on a cluster, or shows what is in it",
    ),
    effects=_NETWORK,
)
_GH = Verbs(
    looking={"--version": look(), "status": network(), "help": look()},
    far=far(
        (
            "pr issue repo release workflow run gist api auth secret variable ssh-key gpg-key codespace "
            "extension browse search label project cache ruleset org alias config attestation"
        ),
        "acts on a service elsewhere",
    ),
    effects=_NETWORK,
)
TABLE: Mapping[str, Judge] = {
    **each(
        (
            "curl wget nc ncat netcat socat telnet ftp sftp lftp tftp http https httpie xh aria2c axel fetch "
            "links lynx w3m elinks rclone s3cmd mosh nmap masscan dig nslookup host whois ping ping6 traceroute "
            "tracepath mtr arp websocat grpcurl wscat youtube-dl yt-dlp hping3 tcpdump tshark wireshark iperf "
            "iperf3 ngrok cloudflared tailscale wg wg-quick openvpn mail mailx sendmail mutt msmtp swaks "
            "smbclient ldapsearch snmpwalk kcat mosquitto_pub mosquitto_sub nats redis-benchmark ab wrk hey "
            "vegeta k6 finger rlogin rsh rexec"
        ),
        network(),
    ),
    "ssh": remote_shell,
    "autossh": remote_shell,
    **each("scp ssh-copy-id sshfs sshpass", network()),
    "docker": _DOCKER.judge,
    "podman": _DOCKER.judge,
    "nerdctl": _DOCKER.judge,
    "docker-compose": _DOCKER.looking["compose"],
    "kubectl": _KUBECTL.judge,
    "gh": _GH.judge,
    **each("glab hub tea jira", network()),
    "tldr": network(""),
}
