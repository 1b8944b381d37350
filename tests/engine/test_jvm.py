"""The view of a session's JVM knows packages without asking for them."""

import pytest

from snaploom.spark.jvm import jvm_of

pytestmark = pytest.mark.spark


def test_a_class_is_found_by_one_question(spark, monkeypatch):
    asked = []
    jvm = jvm_of(spark)
    client, send = jvm._gateway_client, jvm._gateway_client.send_command
    monkeypatch.setattr(client, "send_command", lambda text: asked.append(text) or send(text))
    found = jvm.org.apache.spark.sql.classic.ExpressionUtils
    assert found._fqn == "org.apache.spark.sql.classic.ExpressionUtils"
    assert len(asked) == 1


def test_a_class_of_a_package_that_nobody_named_is_found(spark):
    assert jvm_of(spark).org.apache.commons.io.IOUtils._fqn == "org.apache.commons.io.IOUtils"


def test_a_class_that_does_not_exist_is_still_an_error(spark):
    with pytest.raises(TypeError):
        jvm_of(spark).org.apache.spark.sql.classic.NoSuchClass()
