"""From data that is there to declarations: `snaploom init DIR --from URI`.

Effects come first: `foundfiles` and `samples` read, bounded; nothing is written here. All else is
pure: `layout` finds sources in names, `keys` and `relationships` judge frozen profiles, `jointree`
and `windows` make an output of them, `declarations` and `yamltext` the text. Doubtful guesses stand
in the text as a comment with its evidence.
"""
