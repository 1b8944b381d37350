"""The gate for text that becomes SQL: the allowed SQL of declarations, judged before Spark.

`lexer` scans a text by Spark's own lexical rules and within limits, and gives the text that is
judged and run; `bounded` parses it with sqlglot, with an end to its work; `parsedfacts` finds what
the text reads and calls, and `facts` holds that as plain data; `functions` holds the functions that
SQL may call. It imports models only. The engine asks Spark's own parser and analyser about the same
text again.
"""
