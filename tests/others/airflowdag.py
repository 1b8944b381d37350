"""A DAG file as a user of Airflow writes it: the outputs of the model that MODEL names."""

import os
from datetime import timedelta

from airflow.sdk import DAG
from snaploom.orchestrators.airflow import output_tasks

with DAG("shop", schedule=None, default_args={"retries": 1, "retry_delay": timedelta(0)}) as dag:
    output_tasks(os.environ["MODEL"])
