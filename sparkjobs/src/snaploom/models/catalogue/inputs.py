"""Codes of reading files and resources: SL10x to SL12x."""

from __future__ import annotations

from snaploom.models.catalogue.code import either, error, warning

READING = (
    error(
        "SL101", "File not readable",
        "A path that was given does not exist or cannot be read.",
        "Check the spelling of the path and its permissions.",
    ),
    error(
        "SL102", "File too large",
        "A file is larger, nested deeper, or expands by aliases to more than is ever sensible.",
        "Split the file; write repeated parts once, in a resource that others name.",
    ),
    error(
        "SL103", "Not UTF-8",
        "A file is not text in UTF-8.",
        "Save it as UTF-8.",
    ),
    error(
        "SL104", "Not YAML",
        "A file breaks the rules of YAML; documents after the fault are not read.",
        "Correct the place that is named; indent with spaces, never with tabs.",
    ),
    error(
        "SL105", "Duplicate key",
        "A key stands twice in the same mapping, so that one value would hide the other.",
        "Remove one of the two.",
    ),
    error(
        "SL106", "Not a resource",
        "A document (or an item of a List) is not a mapping.",
        "Begin the document with `apiVersion`, `kind`, `metadata` and `spec`.",
    ),
    warning(
        "SL107", "Foreign document",
        "A document belongs to another API group; it is passed over.",
        "Nothing, or keep Snaploom's resources in a folder of their own.",
    ),
    error(
        "SL108", "Wrong apiVersion",
        "A document has no apiVersion, or a version of snaploom.io that this Snaploom does not "
        "know.",
        "Write `apiVersion: snaploom.io/v1alpha1`.",
    ),
    error(
        "SL109", "Unknown kind",
        "A document has no kind, or one that snaploom.io does not have.",
        "Use one of the six kinds, in the singular, such as `DataSource`.",
    ),
    error(
        "SL110", "Unknown field",
        "A field does not exist at this place; nothing is ignored silently.",
        "Correct the name, or remove the field.",
    ),
    error(
        "SL111", "Missing field",
        "A required field is absent.",
        "Add it.",
    ),
    error(
        "SL112", "Wrong type",
        "A value has another type than the field; nothing is converted silently.",
        "Write a value of the expected type; put text that looks like a number, a boolean or null "
        "in quotes.",
    ),
    error(
        "SL113", "Value not allowed",
        "A value is outside its range, length, pattern or list of names.",
        "Choose a value that is allowed.",
    ),
    error(
        "SL114", "Not exactly one",
        "Of several fields exactly one must be given; none was, or more than one.",
        "Keep one of them.",
    ),
    error(
        "SL115", "Member listed twice",
        "A list has two members that are, or identify, the same.",
        "Remove one of the two.",
    ),
    error(
        "SL116", "Fields contradict each other",
        "Fields of one object are each legal, but not together.",
        "Change or leave out one of the fields that the finding names.",
    ),
    error(
        "SL117", "Virtual sources swapped",
        "A virtual source has the fields of the other kind. The headings of an early design "
        "document had the two swapped: simpleVirtual reads one source at each of its snapshots, "
        "complexVirtual reads the latest snapshot of several and has a snapshotQuery.",
        "Rename `simpleVirtual` to `complexVirtual`, or the other way round.",
    ),
    error(
        "SL118", "Resource declared twice",
        "Two documents declare the same kind and name.",
        "Remove or rename one of the two.",
    ),
    error(
        "SL119", "No resources",
        "The paths that were given contain no resource of snaploom.io.",
        "Give a folder or file that has some; files in folders must end in .yaml or .yml.",
    ),
    warning(
        "SL120", "Name not usable in Kubernetes",
        "The name works on a laptop, but Kubernetes allows lower-case letters, digits, `-` and "
        "`.` only.",
        "Rename the resource if it is ever to be applied to a cluster.",
    ),
    error(
        "SL121", "Variable without a value",
        "A URI, name or time names a variable that neither the project file, nor the environment "
        "that was chosen, nor `--set` gives a value.",
        "Correct the name, or give it a value under `variables` of `snaploom.yaml`.",
    ),
    error(
        "SL122", "Variable in a wrong place",
        "A variable stands where none is replaced: variables are for URIs, paths, names of "
        "resources and places, and times, never for SQL, patterns, options or credentials.",
        "Write the value itself.",
    ),
    error(
        "SL123", "Project not valid",
        "The project file, or the environment or variable that was asked for, cannot be used.",
        "Correct `snaploom.yaml`, or the names after `--env` and `--set`.",
    ),
    either(
        "SL124", "Variable not used",
        "`--set` gives a value to a variable that no declaration names: an error where the project "
        "file has no such variable either.",
        "Correct the name, or leave it out.",
    ),
)  # fmt: skip
