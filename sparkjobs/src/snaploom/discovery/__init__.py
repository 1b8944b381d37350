"""From data that is there to declarations: `snaploom init DIR --from URI`.

Effects come first and last: `foundfiles` and `samples` read, bounded, and `discover` writes nothing.
Between them everything is pure: `layout` finds sources in names, `keys` and `relationships` judge
frozen profiles, `jointree` and `windows` make an output of them, `declarations` and `yamltext` the
text. What is not certain stands in the text as a comment with its evidence.
"""
