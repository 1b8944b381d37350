"""Java sources of ours, compiled inside Spark's JVM.

Spark brings the compiler Janino for its own generated code, so no jar needs to be built, shipped
and matched to a version of Spark: what of Spark's interfaces differs is settled when compiling.
Compiling takes about half a second, once for each JVM.
"""

from __future__ import annotations

import threading
from importlib.resources.abc import Traversable
from typing import cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway, JavaObject

_LOADERS: WeakKeyDictionary[JavaGateway, dict[str, JavaObject]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def compiled_class(
    gateway: JavaGateway, package: str, sources: Traversable, name: str
) -> JavaObject:
    """One of our classes (`java.lang.Class`), compiled from `sources` once in this JVM.

    Raises:
        Py4JJavaError: the sources do not fit this Spark.
    """
    with _LOCK:
        loaders = _LOADERS.setdefault(gateway, {})
        if package not in loaders:
            jvm = gateway.jvm
            finder = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
            for source in sorted(sources.iterdir(), key=str):
                finder.addResource(
                    f"{package.replace('.', '/')}/{source.name}", source.read_bytes()
                )
            parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            loaders[package] = cast(
                JavaObject, jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8")
            )
        loader = loaders[package]
    return cast(JavaObject, loader.loadClass(f"{package}.{name}"))


def new_instance(gateway: JavaGateway, java_class: JavaObject) -> JavaObject:
    """An object of a class by its constructor without arguments."""
    constructor = java_class.getConstructor(gateway.new_array(gateway.jvm.java.lang.Class, 0))
    nothing = gateway.new_array(gateway.jvm.java.lang.Object, 0)
    return cast(JavaObject, constructor.newInstance(nothing))
