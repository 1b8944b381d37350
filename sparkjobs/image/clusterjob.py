"""The application of `spark-submit` in a cluster: `snaploom.jobs.clusterjob`.

A file apart: Python looks for modules first beside the file that it is started with, and the
modules beside the job are not meant for others, which import an `events` of their own.
"""

from snaploom.jobs.clusterjob import main
from snaploom.processend import end_process

end_process(main())
