"""Hosts and addresses that a job may connect to, judged without lookup; URIs for Hadoop."""

import re
import socket
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import entry_points
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import cast

from snaploom.errors import StorageError
from snaploom.installed import load_registered
from snaploom.models.allowances import ALLOW_VARIABLE, Allowances

# Kinds of object stores: all that distinguishes the places of one by their URIs.

ENTRY_POINTS = "snaploom.stores"
"""Entry-point group of kinds that other packages bring, each a `StoreKind` named as its scheme."""


@dataclass(frozen=True)
class StoreKind:
    """A kind of object store; no other module knows kinds by their schemes."""

    name: str
    """As people know it."""
    schemes: tuple[str, ...]
    """Schemes of its URIs, first the one in general use."""
    _: KW_ONLY
    opener: str = ""
    """`module:function` that opens a folder, given URI and environment; empty where only Hadoop's
    client does."""
    in_hadoop: str = ""
    """The scheme that Hadoop's client takes in place of all, where it is one."""
    has_buckets: bool = False
    """Whether a bucket, and no server, stands behind `//`."""
    hosts: tuple[str, ...] = ()
    """Ends of the hosts of its servers; empty where any server may be one."""
    is_looked_into: bool = False
    """Whether `init --from` looks into it."""
    tag: str = "the store's tag of the content"
    """Mark that distinguishes contents of a file beside path, length and time."""
    contract_type: str = "custom"
    """The type of server as data contracts name it."""


_NUMBER = "the number that HDFS gave the file"
_AZURE = (
    ".azuredatalakestore.net", ".blob.storage.azure.net", ".core.chinacloudapi.cn",
    ".core.cloudapi.de", ".core.usgovcloudapi.net", ".core.windows.net", ".dfs.storage.azure.net",
    ".fabric.microsoft.com",
)  # fmt: skip
"""Ends of the hosts of Azure's stores, by its documentation of endpoints and of OneLake."""

S3 = StoreKind(
    "S3", ("s3", "s3a", "s3n"), opener="snaploom.files.cloud:open_s3", in_hadoop="s3a",
    has_buckets=True, is_looked_into=True, contract_type="s3",
)  # fmt: skip
STORE_KINDS = (
    S3,
    StoreKind(
        "Google", ("gs",), opener="snaploom.files.cloud:open_gs", has_buckets=True,
        is_looked_into=True,
    ),
    StoreKind("Azure", ("az",), opener="snaploom.files.cloud:open_azure", is_looked_into=True),
    StoreKind(
        "Azure", ("abfss", "abfs"), opener="snaploom.files.cloud:open_azure", hosts=_AZURE
    ),
    StoreKind("Azure", ("wasbs", "wasb", "adl"), hosts=_AZURE),
    StoreKind("another cloud", ("cos", "cosn", "obs", "oss"), has_buckets=True),
    StoreKind("HDFS", ("hdfs", "webhdfs", "swebhdfs"), tag=_NUMBER),
    StoreKind("HDFS", ("viewfs",)),
)  # fmt: skip
"""Kinds of ours. Places of other schemes are Hadoop's, and servers stand in their URIs."""
_OF_SCHEMES = {scheme: kind for kind in STORE_KINDS for scheme in kind.schemes}


@cache
def store_kind(scheme: str) -> StoreKind | None:
    """The kind of a scheme, in any case: ours, or one of an installed package; None for others."""
    folded = scheme.lower()
    found = _OF_SCHEMES.get(folded)
    for entry in () if found else entry_points(group=ENTRY_POINTS, name=folded):
        loaded = load_registered(entry, "the store", StoreKind.__dataclass_fields__, StorageError)
        return cast(StoreKind, loaded)
    return found


def kind_of(uri: str) -> StoreKind | None:
    """The kind of the store of a URI; None for paths and other schemes."""
    scheme, mark, _ = uri.partition("://")
    return store_kind(scheme) if mark else None


def hadoop_uri(uri: str) -> str:
    """The URI as Hadoop's `Path` takes it: `s3://` becomes `s3a://`, most others stay."""
    kind = kind_of(uri)
    if kind is None or not kind.in_hadoop:
        return uri
    return f"{kind.in_hadoop}://{uri.partition('://')[2]}"


# Servers that a job may connect to: hosts and addresses judged, nothing looked up.

Address = IPv4Address | IPv6Address

METADATA_NAMES = frozenset({
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data",
    "instance-data.ec2.internal", "metadata.azure.internal", "metadata.tencentyun.com",
})  # fmt: skip
"""Names under which clouds offer their metadata services, some at addresses that are not
link-local."""

METADATA_NETWORKS = tuple(
    map(
        ip_network,
        (
            "100.100.100.200", "168.63.129.16", "192.0.0.192",
            "fd00:ec2::/32", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:100::100:200",
            "fd00:a9fe:a9fe::1", "fd00:42::42",
        ),
    )
)  # fmt: skip
"""Metadata services that are not link-local: of Alibaba, Azure and Oracle; by IPv6 of AWS, which
has credentials of pods, time and names in the same network, Google, Oracle, Alibaba, Akamai and
Scaleway."""

_EMBEDDING = (
    (IPv6Network("64:ff9b::/96"), (96,)),
    (IPv6Network("64:ff9b:1::/48"), (96, 64, 56, 48)),
    (IPv6Network("::ffff:0:0/96"), (96,)),
    (IPv6Network("::ffff:0:0:0/96"), (96,)),
    (IPv6Network("2002::/16"), (16,)),
)
"""Networks whose addresses stand for IPv4 addresses, and the bits after which these begin: of
gateways (RFC 6052, and by RFC 8215 of a network's own, which may begin at any of four places),
mapped and translated ones (RFC 4291, 7915), and 6to4 (RFC 3056)."""

_COMPATIBLE = IPv6Network("::/96")
"""The same in an older form (RFC 4291); `::` and `::1` are none of them."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The second half of an address of RFC 5214 begins so; its IPv4 address follows."""

_LOOPBACK = IPv4Address("127.0.0.1")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|[0-9A-Fa-f:.]{2,45}")


@dataclass(frozen=True)
class EndpointRules:
    """Rules for the endpoints that may be connected to."""

    loopback: bool = True
    """Whether addresses of the machine itself may be, even where no entry names them."""
    entries: tuple[str, ...] = ()
    """Hosts that may be named, as `HOST` or `HOST:PORT`, where `*` stands for any text; empty, or
    with `*` among them: any."""

    @property
    def is_restricted(self) -> bool:
        """Whether only hosts of the list may be named."""
        return bool(self.entries) and "*" not in self.entries

    def names(self, host: str, port: int) -> bool:
        """Whether an entry names a host itself; `*` by itself names no host."""
        wanted = plain_host(host)
        return any(_matches(entry, wanted, port) for entry in self.entries if entry != "*")


def plain_host(host: str) -> str:
    """A host in small letters, without brackets and the dot that ends a whole name."""
    return host.removeprefix("[").removesuffix("]").lower().rstrip(".")


def _matches(entry: str, host: str, port: int) -> bool:
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and (not name.count(":") or name.startswith("[")):
        return int(number) == port and fnmatchcase(host, plain_host(name))
    return fnmatchcase(host, plain_host(entry))


OF_ADMINISTRATOR = EndpointRules()
"""For servers that the administrator's own settings name."""


def declared_rules(environment: Mapping[str, str]) -> EndpointRules:
    """For servers that declarations, statements and settings of a session name.

    The environment of an operator's job has its allowances; elsewhere somebody runs a program on a
    machine of their own.
    """
    if ALLOW_VARIABLE not in environment:
        return EndpointRules()
    return job_rules(Allowances.from_environment(environment))


def job_rules(allow: Allowances) -> EndpointRules:
    """For servers that declarations name in jobs of an operator."""
    return EndpointRules(loopback=False, entries=allow.endpoints)


def refusal_of_host(host: str, port: int, rules: EndpointRules) -> str:
    """Return why a host may not be named, as far as its text shows; empty if it may.

    An IPv6 address may have brackets or not.
    """
    plain = plain_host(host)
    if not _HOST.fullmatch(plain):
        return "it is neither the name of a host nor an address"
    if plain in METADATA_NAMES:
        return "it is a metadata service"
    if rules.is_restricted and not rules.names(plain, port):
        return "it is not on the list 'endpoints'"
    address = _LOOPBACK if _is_local(plain) else literal_address(plain)
    return "" if address is None else refusal_of_address(address, rules, plain, port)


def refusal_of_address(address: Address, rules: EndpointRules, host: str, port: int) -> str:
    """Return why an address may not be connected to; empty if it may.

    `host` is the name that was resolved to the address.
    """
    return next(filter(None, (_refusal(found, rules, host, port) for found in meant(address))), "")


def _refusal(found: Address, rules: EndpointRules, host: str, port: int) -> str:
    if any(found in network for network in METADATA_NETWORKS):
        return "it is a metadata service"
    if found.is_link_local:
        return "it is link-local, where metadata services are"
    if found.is_unspecified or found.is_multicast or _is_reserved(found):
        return "it is no address of a server"
    if found.is_loopback and not rules.loopback and not rules.names(host, port):
        return "it is the machine that connects, and not on the list 'endpoints'"
    return ""


def _is_local(plain: str) -> bool:
    """Whether a name is the machine's own everywhere (RFC 6761)."""
    return plain == "localhost" or plain.endswith(".localhost")


def literal_address(host: str) -> Address | None:
    """The address that a text is; None for a name.

    Also the forms that C's resolver takes for IPv4: `2130706433`, `0x7f.1`, `0177.0.0.1`.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
    except (OSError, ValueError):
        return None


def meant(address: Address) -> tuple[Address, ...]:
    """The IPv4 addresses that an IPv6 address may stand for; else the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    for network, places in _EMBEDDING:
        if address in network:
            readings = tuple(_embedded(address, place) for place in places)
            # One in 0.0.0.0/8 is only that no bits are set at that place.
            return tuple(found for found in readings if int(found) >> 24) or readings[:1]
    if address.teredo is not None:
        return address.teredo
    low = int(address) & 0xFFFF_FFFF
    is_compatible = address in _COMPATIBLE and low > 1
    if is_compatible or (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return (IPv4Address(low),)
    return (address,)


def _embedded(address: IPv6Address, place: int) -> IPv4Address:
    """The IPv4 address that begins after some bits; the ninth octet is none of it (RFC 6052)."""
    octets = address.packed
    if place in (48, 56, 64):
        octets = octets[:8] + octets[9:]
    return IPv4Address(octets[place // 8 : place // 8 + 4])


def _is_reserved(address: Address) -> bool:
    # `is_reserved` of IPv6 has `::1` and addresses that are only unassigned.
    if isinstance(address, IPv6Address):
        return address.is_site_local
    return address.is_reserved or address in _THIS_NETWORK


_THIS_NETWORK = frozenset(IPv4Address(number) for number in range(256))
"""0.0.0.0 to 0.0.0.255, which Linux takes for the machine itself in part."""
