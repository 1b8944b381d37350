"""The application of `spark-submit` in a cluster: `snaploom.run.clusterjob`.

A file apart: Python looks for modules first beside the file that it is started with, and the
modules beside the job are not meant for others, which import an `events` of their own.
"""

from snaploom.localfiles import end_process
from snaploom.run.clusterjob import main

end_process(main())
