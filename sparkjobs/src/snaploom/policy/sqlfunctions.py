"""Functions that SQL may call: every one of Spark's own, judged once.

The list has all functions of Spark 4.1 to 4.3, each with the class that Spark has for it. Other
functions are refused, so a newer Spark's functions are refused until they are judged here; a test
compares the list with the registry of the Spark that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from snaploom.models.allowances import Allowances
from snaploom.policy.sqltext import Token, TokenKind


class Kind(StrEnum):
    """Places in which a function may stand."""

    VALUE = "VALUE"
    """Anywhere: it makes one value of the values of one row."""
    AGGREGATE = "AGGREGATE"
    """It makes one value of many rows."""
    WINDOW = "WINDOW"
    """It needs OVER."""
    GROUPING = "GROUPING"
    """It decides on, or speaks of, the groups of a GROUP BY."""
    GENERATOR = "GENERATOR"
    """It makes rows of a value."""
    TABLE = "TABLE"
    """It stands where a table does."""


class Determinism(StrEnum):
    """The dependence of a function's result."""

    ROW = "ROW"
    """On its arguments and the session's settings only: the same in every run."""
    ORDER = "ORDER"
    """Also on the order in which Spark comes across rows, or which of several equals it takes."""
    SESSION = "SESSION"
    """On the time, the user or the session: one value a query, another one in another run."""
    RANDOM = "RANDOM"
    """On chance, or on where Spark computes a row: it may differ when a task runs again."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of Spark, with its judgement."""

    name: str
    classes: frozenset[str]
    """Simple names of Spark's classes for it: more than one where versions differ."""
    kind: Kind
    determinism: Determinism
    refused: str
    """Reason why it is refused, as a clause that follows "it"; empty when it may be called."""


@dataclass(frozen=True, slots=True)
class _Group:
    kind: Kind
    determinism: Determinism
    functions: str
    """`name:Class`, with a `|` between classes."""
    refused: str = ""


_JAVA = "calls any Java method"
_FILE = "reads a file that the SQL names"
_XML = "fetches the document type that an XML text names, from the network too"
_LOGS = "shows what Python processes logged"
_TABLE = "is a table of its own, which no source declares"
_METRIC = "reads a metric view, which no source can be"

_GROUPS = (
    _Group(
        Kind.VALUE,
        Determinism.ROW,
        """
        !:Not %:Remainder &:BitwiseAnd *:Multiply +:Add -:Subtract /:Divide <:LessThan <<:ShiftLeft
        <=:LessThanOrEqual <=>:EqualNullSafe =:EqualTo ==:EqualTo >:GreaterThan
        >=:GreaterThanOrEqual >>:ShiftRight >>>:ShiftRightUnsigned ^:BitwiseXor abs:Abs acos:Acos
        acosh:Acosh add_months:AddMonths aes_decrypt:AesDecrypt aggregate:ArrayAggregate and:And
        approx_top_k_estimate:ApproxTopKEstimate array:CreateArray array_append:ArrayAppend
        array_compact:ArrayCompact array_contains:ArrayContains array_distinct:ArrayDistinct
        array_except:ArrayExcept array_insert:ArrayInsert array_intersect:ArrayIntersect
        array_join:ArrayJoin array_max:ArrayMax array_min:ArrayMin array_position:ArrayPosition
        array_prepend:ArrayPrepend array_remove:ArrayRemove array_repeat:ArrayRepeat
        array_size:ArraySize array_sort:ArraySort array_union:ArrayUnion
        arrays_overlap:ArraysOverlap arrays_zip:ArraysZip ascii:Ascii asin:Asin asinh:Asinh
        assert_true:AssertTrue atan:Atan atan2:Atan2 atanh:Atanh base64:Base64 between:Between
        bigint:Cast bin:Bin binary:Cast bit_count:BitwiseCount bit_get:BitwiseGet
        bit_length:BitLength bitmap_bit_position:BitmapBitPosition
        bitmap_bucket_number:BitmapBucketNumber bitmap_count:BitmapCount boolean:Cast bround:BRound
        btrim:StringTrimBoth cardinality:Size cast:Cast cbrt:Cbrt ceil:CeilExpressionBuilder
        ceiling:CeilExpressionBuilder char:Chr char_length:Length character_length:Length chr:Chr
        coalesce:Coalesce collate:CollateExpressionBuilder collation:Collation concat:Concat
        concat_ws:ConcatWs contains:ContainsExpressionBuilder conv:Conv
        convert_timezone:ConvertTimezone cos:Cos cosh:Cosh cot:Cot crc32:Crc32 csc:Csc date:Cast
        date_add:DateAdd date_diff:DateDiff date_format:DateFormatClass
        date_from_unix_date:DateFromUnixDate date_part:DatePartExpressionBuilder date_sub:DateSub
        date_trunc:TruncTimestamp dateadd:DateAdd datediff:DateDiff
        datepart:DatePartExpressionBuilder day:DayOfMonth dayname:DayName dayofmonth:DayOfMonth
        dayofweek:DayOfWeek dayofyear:DayOfYear decimal:Cast decode:Decode degrees:ToDegrees
        div:IntegralDivide double:Cast e:EulerNumber element_at:ElementAt elt:Elt encode:Encode
        endswith:EndsWithExpressionBuilder equal_null:EqualNull exists:ArrayExists exp:Exp
        expm1:Expm1 extract:Extract factorial:Factorial filter:ArrayFilter find_in_set:FindInSet
        flatten:Flatten float:Cast floor:FloorExpressionBuilder forall:ArrayForAll
        format_number:FormatNumber format_string:FormatString from_avro:FromAvro
        from_base32:UnBase32 from_csv:CsvToStructs from_json:JsonToStructs
        from_unixtime:FromUnixTime from_utc_timestamp:FromUTCTimestamp from_xml:XmlToStructs get:Get
        get_json_object:GetJsonObject getbit:BitwiseGet greatest:Greatest hash:Murmur3Hash hex:Hex
        hll_sketch_estimate:HllSketchEstimate hll_union:HllUnion hmac:Hmac
        hour:HourExpressionBuilder hypot:Hypot if:If ifnull:Nvl ilike:ILike in:In initcap:InitCap
        instr:StringInstr|StringInstrExpressionBuilder int:Cast is_valid_utf8:IsValidUTF8
        is_valid_variant:IsValidVariant is_variant_null:IsVariantNull isnan:IsNaN
        isnotnull:IsNotNull isnull:IsNull jaro_winkler_similarity:JaroWinkler
        json_array_length:LengthOfJsonArray json_object_keys:JsonObjectKeys
        kll_sketch_get_n_bigint:KllSketchGetNBigint kll_sketch_get_n_double:KllSketchGetNDouble
        kll_sketch_get_n_float:KllSketchGetNFloat
        kll_sketch_get_quantile_bigint:KllSketchGetQuantileBigint
        kll_sketch_get_quantile_double:KllSketchGetQuantileDouble
        kll_sketch_get_quantile_float:KllSketchGetQuantileFloat
        kll_sketch_get_rank_bigint:KllSketchGetRankBigint
        kll_sketch_get_rank_double:KllSketchGetRankDouble
        kll_sketch_get_rank_float:KllSketchGetRankFloat
        kll_sketch_to_string_bigint:KllSketchToStringBigint
        kll_sketch_to_string_double:KllSketchToStringDouble
        kll_sketch_to_string_float:KllSketchToStringFloat last_day:LastDay lcase:Lower least:Least
        left:Left len:Length length:Length levenshtein:Levenshtein like:Like ln:Log
        locate:StringLocate log:Logarithm log10:Log10 log1p:Log1p log2:Log2 lower:Lower
        lpad:LPadExpressionBuilder ltrim:StringTrimLeft luhn_check:Luhncheck make_date:MakeDate
        make_dt_interval:MakeDTInterval make_interval:MakeInterval make_time:MakeTime
        make_timestamp:MakeTimestampExpressionBuilder
        make_timestamp_ltz:MakeTimestampLTZExpressionBuilder
        make_timestamp_ntz:MakeTimestampNTZExpressionBuilder make_valid_utf8:MakeValidUTF8
        make_ym_interval:MakeYMInterval map:CreateMap map_concat:MapConcat
        map_contains_key:MapContainsKey map_entries:MapEntries map_filter:MapFilter
        map_from_arrays:MapFromArrays map_from_entries:MapFromEntries map_keys:MapKeys
        map_values:MapValues map_zip_with:MapZipWith mask:MaskExpressionBuilder md5:Md5
        minute:MinuteExpressionBuilder mod:Remainder month:Month monthname:MonthName
        months_between:MonthsBetween named_struct:CreateNamedStruct nanvl:NaNvl negative:UnaryMinus
        next_day:NextDay not:Not nullif:NullIf nullifzero:NullIfZero nvl:Nvl nvl2:Nvl2
        octet_length:OctetLength or:Or overlay:Overlay parse_json:ParseJsonExpressionBuilder
        parse_url:ParseUrl pi:Pi pmod:Pmod position:StringLocate positive:UnaryPositive pow:Pow
        power:Pow printf:FormatString quarter:Quarter quote:Quote radians:ToRadians
        raise_error:RaiseErrorExpressionBuilder reduce:ArrayAggregate regexp:RLike
        regexp_count:RegExpCount regexp_extract:RegExpExtract regexp_extract_all:RegExpExtractAll
        regexp_instr:RegExpInStr regexp_like:RLike regexp_replace:RegExpReplace
        regexp_substr:RegExpSubStr repeat:StringRepeat replace:StringReplace reverse:Reverse
        right:Right rint:Rint rlike:RLike round:Round rpad:RPadExpressionBuilder
        rtrim:StringTrimRight schema_of_avro:SchemaOfAvro schema_of_csv:SchemaOfCsv
        schema_of_json:SchemaOfJson schema_of_variant:SchemaOfVariant schema_of_xml:SchemaOfXml
        sec:Sec second:SecondExpressionBuilder sentences:Sentences sequence:Sequence sha:Sha1
        sha1:Sha1 sha2:Sha2 shiftleft:ShiftLeft shiftright:ShiftRight
        shiftrightunsigned:ShiftRightUnsigned sign:Signum signum:Signum sin:Sin sinh:Sinh size:Size
        slice:Slice smallint:Cast sort_array:SortArray soundex:SoundEx space:StringSpace
        split:StringSplit split_part:SplitPart sqrt:Sqrt st_asbinary:ST_AsBinary
        st_geogfromwkb:ST_GeogFromWKB st_geomfromwkb:ST_GeomFromWKB st_setsrid:ST_SetSrid
        st_srid:ST_Srid startswith:StartsWithExpressionBuilder str_to_map:StringToMap string:Cast
        struct:CreateNamedStruct substr:Substring substring:Substring substring_index:SubstringIndex
        tan:Tan tanh:Tanh theta_difference:ThetaDifference theta_intersection:ThetaIntersection
        theta_sketch_estimate:ThetaSketchEstimate theta_union:ThetaUnion time:Cast
        time_bucket:TimeBucketExpressionBuilder time_diff:TimeDiff time_from_micros:TimeFromMicros
        time_from_millis:TimeFromMillis time_from_seconds:TimeFromSeconds
        time_to_micros:TimeToMicros time_to_millis:TimeToMillis time_to_seconds:TimeToSeconds
        time_trunc:TimeTrunc timestamp:Cast timestamp_micros:MicrosToTimestamp
        timestamp_millis:MillisToTimestamp timestamp_nanos:NanosToTimestamp
        timestamp_seconds:SecondsToTimestamp tinyint:Cast to_avro:ToAvro to_base32:Base32
        to_binary:ToBinary to_char:ToCharacterBuilder to_csv:StructsToCsv to_date:ParseToDate
        to_json:StructsToJson to_number:ToNumber to_time:ToTime to_timestamp:ParseToTimestamp
        to_timestamp_ltz:ParseToTimestampLTZExpressionBuilder
        to_timestamp_ntz:ParseToTimestampNTZExpressionBuilder to_unix_timestamp:ToUnixTimestamp
        to_utc_timestamp:ToUTCTimestamp to_varchar:ToCharacterBuilder
        to_variant_object:ToVariantObject to_xml:StructsToXml transform:ArrayTransform
        transform_keys:TransformKeys transform_values:TransformValues translate:StringTranslate
        trim:StringTrim trunc:TruncDate try_add:TryAdd try_aes_decrypt:TryAesDecrypt
        try_divide:TryDivide try_element_at:TryElementAt try_make_interval:TryMakeInterval
        try_make_timestamp:TryMakeTimestampExpressionBuilder
        try_make_timestamp_ltz:TryMakeTimestampLTZExpressionBuilder
        try_make_timestamp_ntz:TryMakeTimestampNTZExpressionBuilder try_mod:TryMod
        try_multiply:TryMultiply try_parse_json:TryParseJsonExpressionBuilder
        try_parse_url:TryParseUrl try_subtract:TrySubtract try_to_binary:TryToBinary
        try_to_date:TryToDateExpressionBuilder try_to_number:TryToNumber
        try_to_time:TryToTimeExpressionBuilder try_to_timestamp:TryToTimestampExpressionBuilder
        try_url_decode:TryUrlDecode try_validate_utf8:TryValidateUTF8
        try_variant_array_append:TryVariantArrayAppendExpressionBuilder
        try_variant_get:TryVariantGetExpressionBuilder
        try_variant_insert:TryVariantInsertExpressionBuilder
        try_variant_set:TryVariantSetExpressionBuilder tuple_difference_double:TupleDifferenceDouble
        tuple_difference_integer:TupleDifferenceInteger
        tuple_difference_theta_double:TupleDifferenceThetaDouble
        tuple_difference_theta_integer:TupleDifferenceThetaInteger
        tuple_intersection_double:TupleIntersectionDouble
        tuple_intersection_integer:TupleIntersectionInteger
        tuple_intersection_theta_double:TupleIntersectionThetaDouble
        tuple_intersection_theta_integer:TupleIntersectionThetaInteger
        tuple_sketch_estimate_double:TupleSketchEstimateDouble
        tuple_sketch_estimate_integer:TupleSketchEstimateInteger
        tuple_sketch_summary_double:TupleSketchSummaryDouble
        tuple_sketch_summary_integer:TupleSketchSummaryInteger
        tuple_sketch_theta_double:TupleSketchThetaDouble
        tuple_sketch_theta_integer:TupleSketchThetaInteger
        tuple_union_double:TupleUnionDoubleExpressionBuilder
        tuple_union_integer:TupleUnionIntegerExpressionBuilder
        tuple_union_theta_double:TupleUnionThetaDoubleExpressionBuilder
        tuple_union_theta_integer:TupleUnionThetaIntegerExpressionBuilder typeof:TypeOf ucase:Upper
        unbase64:UnBase64 unhex:Unhex unix_date:UnixDate unix_micros:UnixMicros
        unix_millis:UnixMillis unix_nanos:UnixNanos unix_seconds:UnixSeconds upper:Upper
        url_decode:UrlDecode url_encode:UrlEncode validate_utf8:ValidateUTF8
        variant_array_append:VariantArrayAppendExpressionBuilder variant_delete:VariantDelete
        variant_get:VariantGetExpressionBuilder variant_insert:VariantInsertExpressionBuilder
        variant_set:VariantSetExpressionBuilder
        variant_strip_nulls:VariantStripNullsExpressionBuilder
        vector_cosine_similarity:VectorCosineSimilarity vector_inner_product:VectorInnerProduct
        vector_l2_distance:VectorL2Distance vector_norm:VectorNorm vector_normalize:VectorNormalize
        weekday:WeekDay weekofyear:WeekOfYear when:CaseWhen width_bucket:WidthBucket
        xxhash64:XxHash64 year:Year zeroifnull:ZeroIfNull zip_with:ZipWith |:BitwiseOr ~:BitwiseNot
        """,
    ),
    _Group(
        Kind.VALUE,
        Determinism.SESSION,
        """
        curdate:CurDateExpressionBuilder current_catalog:CurrentCatalog
        current_database:CurrentDatabase current_date:CurrentDate current_path:CurrentPath
        current_schema:CurrentDatabase current_time:CurrentTime
        current_timestamp:CurrentTimestamp|CurrentTimestampExpressionBuilder
        current_timezone:CurrentTimeZone current_user:CurrentUser localtime:CurrentTime
        localtimestamp:LocalTimestamp|LocalTimestampExpressionBuilder now:Now|NowExpressionBuilder
        session_user:CurrentUser unix_timestamp:UnixTimestamp user:CurrentUser version:SparkVersion
        """,
    ),
    _Group(
        Kind.VALUE,
        Determinism.RANDOM,
        """
        aes_encrypt:AesEncrypt input_file_block_length:InputFileBlockLength
        input_file_block_start:InputFileBlockStart input_file_name:InputFileName
        kll_sketch_merge_bigint:KllSketchMergeBigint kll_sketch_merge_double:KllSketchMergeDouble
        kll_sketch_merge_float:KllSketchMergeFloat
        monotonically_increasing_id:MonotonicallyIncreasingID rand:Rand randn:Randn random:Rand
        randstr:RandStr shuffle:Shuffle spark_partition_id:SparkPartitionID uniform:Uniform
        uuid:Uuid
        """,
    ),
    _Group(
        Kind.AGGREGATE,
        Determinism.ROW,
        """
        any:BoolOr approx_count_distinct:HyperLogLogPlusPlus avg:Average bit_and:BitAndAgg
        bit_or:BitOrAgg bit_xor:BitXorAgg bitmap_and_agg:BitmapAndAgg
        bitmap_construct_agg:BitmapConstructAgg bitmap_or_agg:BitmapOrAgg bool_and:BoolAnd
        bool_or:BoolOr corr:Corr count:Count count_if:CountIf
        count_min_sketch:CountMinSketchAggExpressionBuilder covar_pop:CovPopulation
        covar_samp:CovSample every:BoolAnd kurtosis:Kurtosis max:Max mean:Average median:Median
        min:Min percentile:Percentile percentile_cont:PercentileContBuilder
        percentile_disc:PercentileDiscBuilder regr_avgx:RegrAvgX regr_avgy:RegrAvgY
        regr_count:RegrCount regr_intercept:RegrIntercept regr_r2:RegrR2 regr_slope:RegrSlope
        regr_sxx:RegrSXX regr_sxy:RegrSXY regr_syy:RegrSYY schema_of_variant_agg:SchemaOfVariantAgg
        skewness:Skewness some:BoolOr std:StddevSamp stddev:StddevSamp stddev_pop:StddevPop
        stddev_samp:StddevSamp sum:Sum try_avg:TryAverageExpressionBuilder
        try_sum:TrySumExpressionBuilder var_pop:VariancePop var_samp:VarianceSamp
        variance:VarianceSamp vector_avg:VectorAvg vector_sum:VectorSum
        """,
    ),
    _Group(
        Kind.AGGREGATE,
        Determinism.ORDER,
        """
        any_value:AnyValue approx_percentile:ApproximatePercentile approx_top_k:ApproxTopK
        approx_top_k_accumulate:ApproxTopKAccumulate approx_top_k_combine:ApproxTopKCombine
        array_agg:CollectList collect_list:CollectList collect_set:CollectSet
        collect_union:CollectUnion first:First first_value:First histogram_numeric:HistogramNumeric
        hll_sketch_agg:HllSketchAgg hll_union_agg:HllUnionAgg last:Last last_value:Last
        listagg:ListAgg max_by:MaxBy|MaxByBuilder min_by:MinBy|MinByBuilder mode:ModeBuilder
        percentile_approx:ApproximatePercentile string_agg:ListAgg
        theta_intersection_agg:ThetaIntersectionAgg theta_sketch_agg:ThetaSketchAgg
        theta_union_agg:ThetaUnionAgg tuple_intersection_agg_double:TupleIntersectionAggDouble
        tuple_intersection_agg_integer:TupleIntersectionAggInteger
        tuple_sketch_agg_double:TupleSketchAggDoubleExpressionBuilder
        tuple_sketch_agg_integer:TupleSketchAggIntegerExpressionBuilder
        tuple_union_agg_double:TupleUnionAggDoubleExpressionBuilder
        tuple_union_agg_integer:TupleUnionAggIntegerExpressionBuilder
        """,
    ),
    _Group(
        Kind.AGGREGATE,
        Determinism.RANDOM,
        """
        kll_merge_agg_bigint:KllMergeAggBigint kll_merge_agg_double:KllMergeAggDouble
        kll_merge_agg_float:KllMergeAggFloat kll_sketch_agg_bigint:KllSketchAggBigint
        kll_sketch_agg_double:KllSketchAggDouble kll_sketch_agg_float:KllSketchAggFloat
        """,
    ),
    _Group(
        Kind.WINDOW,
        Determinism.ROW,
        """
        cume_dist:CumeDist dense_rank:DenseRank percent_rank:PercentRank rank:Rank
        """,
    ),
    _Group(
        Kind.WINDOW,
        Determinism.ORDER,
        """
        counter_diff:CounterDiffExpressionBuilder lag:Lag lead:Lead nth_value:NthValue ntile:NTile
        row_number:RowNumber
        """,
    ),
    _Group(
        Kind.GROUPING,
        Determinism.ROW,
        """
        grouping:Grouping grouping_id:GroupingID session_window:SessionWindow window:TimeWindow
        window_time:WindowTime
        """,
    ),
    _Group(
        Kind.GENERATOR,
        Determinism.ROW,
        """
        explode:ExplodeExpressionBuilder|ExplodeGeneratorBuilder
        explode_outer:ExplodeExpressionBuilder|ExplodeOuterGeneratorBuilder
        inline:InlineExpressionBuilder|InlineGeneratorBuilder
        inline_outer:InlineExpressionBuilder|InlineOuterGeneratorBuilder json_tuple:JsonTuple
        posexplode:PosExplodeExpressionBuilder|PosExplodeGeneratorBuilder
        posexplode_outer:PosExplodeExpressionBuilder|PosExplodeOuterGeneratorBuilder stack:Stack
        variant_explode:VariantExplodeGeneratorBuilder
        variant_explode_outer:VariantExplodeOuterGeneratorBuilder
        """,
    ),
    _Group(
        Kind.VALUE,
        Determinism.ROW,
        """
        from_protobuf:FromProtobuf to_protobuf:ToProtobuf
        """,
        refused=_FILE,
    ),
    _Group(
        Kind.VALUE,
        Determinism.ROW,
        """
        java_method:CallMethodViaReflection reflect:CallMethodViaReflection try_reflect:TryReflect
        """,
        refused=_JAVA,
    ),
    _Group(
        Kind.VALUE,
        Determinism.ROW,
        """
        xpath:XPathList xpath_boolean:XPathBoolean xpath_double:XPathDouble xpath_float:XPathFloat
        xpath_int:XPathInt xpath_long:XPathLong xpath_number:XPathDouble xpath_short:XPathShort
        xpath_string:XPathString
        """,
        refused=_XML,
    ),
    _Group(
        Kind.AGGREGATE,
        Determinism.ROW,
        """
        measure:Measure
        """,
        refused=_METRIC,
    ),
    _Group(
        Kind.TABLE,
        Determinism.ROW,
        """
        python_worker_logs:PythonWorkerLogs
        """,
        refused=_LOGS,
    ),
    _Group(
        Kind.TABLE,
        Determinism.ROW,
        """
        collations:Collations range:Range sql_keywords:SQLKeywords
        """,
        refused=_TABLE,
    ),
)

FUNCTIONS = MappingProxyType(
    {
        name: Function(
            name, frozenset(classes.split("|")), group.kind, group.determinism, group.refused
        )
        for group in _GROUPS
        for name, _, classes in (entry.rpartition(":") for entry in group.functions.split())
    }
)

_BUILTIN = ("system.builtin.", "builtin.")
"""The schema of Spark's own functions; those of any other are user-defined."""
_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})
"""Functions that give the current time without arguments, and convert one with them."""


def builtin_name(name: str) -> str:
    """The name of a function in lower case, without the schema of Spark's own functions."""
    folded = name.casefold()
    return next((folded.removeprefix(p) for p in _BUILTIN if folded.startswith(p)), folded)


def refusal_of(name: str, allow: Allowances) -> str:
    """Return why SQL may not call a function, as a clause; empty when it may.

    `name` is as SQL calls it, with its schema in front.
    """
    bare = builtin_name(name)
    if bare in {builtin_name(allowed) for allowed in allow.functions}:
        return ""
    if "." in bare:
        return "functions of a schema are not on the list"
    known = FUNCTIONS.get(bare)
    if known is None:
        return "it is not on the list of Spark's functions"
    return f"it {known.refused}" if known.refused else ""


def determinism_of(name: str, *, has_arguments: bool = True) -> Determinism | None:
    """The dependence of a function's result; None for one that is not on the list."""
    bare = builtin_name(name)
    if bare in _WITHOUT_ARGUMENTS:
        return Determinism.ROW if has_arguments else Determinism.SESSION
    known = FUNCTIONS.get(bare)
    return None if known is None else known.determinism


# Parts of SQL that give another result when computed again.

CHANGES_ROWS = frozenset({Determinism.SESSION, Determinism.RANDOM})
"""Dependences forbidden to SQL that makes rows, keys, groups or filters."""
CHANGES_VERDICTS = frozenset({Determinism.RANDOM})
"""Dependences forbidden to a check and to the choice of an index's files. They may read the clock:
a check asks how old data is, and changes no row."""

REASONS: Mapping[Determinism, str] = MappingProxyType(
    {
        Determinism.SESSION: "it depends on the time, the user or the session of the run",
        Determinism.RANDOM: "it depends on chance, or on where Spark computes a row",
        Determinism.ORDER: "it depends on the order in which Spark comes across rows",
    }
)
"""Reason why a result varies, as a clause."""

WORDS = frozenset(
    {
        "current_catalog", "current_database", "current_date", "current_path", "current_schema",
        "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
        "session_user",
    }
)  # fmt: skip
"""Functions that Spark takes a bare name for, where no column is called so. Not `user`, which
columns are called: the job sees which of the two it is."""
_TYPES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
"""Types before a quoted text that Spark reads `now` in."""
_CONVERSIONS = _TYPES | {"to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"}
"""Functions that read `now` in a quoted text."""
_MOMENT = re.compile(
    r"\s*(?:now|today|yesterday|tomorrow)(?:[ \t].*)?\s*", re.IGNORECASE | re.DOTALL
)
"""Texts that Spark takes for the time of the query; a time zone may follow. Not `epoch`, which is
always the same."""
_MADE_STABLE_BY = frozenset(
    {"sort_array", "array_sort", "size", "array_size", "cardinality", "array_max", "array_min",
     "array_contains"}
)  # fmt: skip
"""Functions whose result is the same for every order of an array."""
_WITH_ORDER = frozenset({"OVER", "WITHIN"})
"""Words behind a call that bring an order with them."""


def is_moment(text: str) -> bool:
    """Whether Spark takes a text for the time of the query where it becomes a date or a time."""
    return _MOMENT.fullmatch(text) is not None


def varying_calls(tokens: Sequence[Token]) -> Iterator[tuple[Determinism, str]]:
    """Calls of functions whose result varies.

    The tokens decide, not the tree: the parser replaces functions by others.
    """
    for place, token in enumerate(tokens[:-1]):
        if tokens[place + 1].value != "(" or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        has_arguments = place + 2 < len(tokens) and tokens[place + 2].value != ")"
        name = _qualified(tokens, place)
        determinism = determinism_of(name, has_arguments=has_arguments)
        if determinism is None or determinism is Determinism.ROW:
            continue
        if determinism is Determinism.ORDER and _has_order(tokens, place):
            continue
        yield determinism, f"{builtin_name(name)}()"


def _qualified(tokens: Sequence[Token], place: int) -> str:
    parts = [tokens[place].name]
    while place >= 2 and tokens[place - 1].value == ".":
        place -= 2
        parts.insert(0, tokens[place].name)
    return ".".join(parts)


def _has_order(tokens: Sequence[Token], place: int) -> bool:
    """Whether a call is inside an order-insensitive one, or has OVER or WITHIN GROUP behind it."""
    is_inside = place >= 2 and tokens[place - 1].value == "("
    if is_inside and tokens[place - 2].name.casefold() in _MADE_STABLE_BY:
        return True
    depth = 0
    for following in range(place + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[following].value, 0)
        if depth == 0:
            behind = tokens[following + 1 : following + 2]
            return bool(behind) and behind[0].upper in _WITH_ORDER
    return False


def moments(tokens: Sequence[Token]) -> Iterator[tuple[Determinism, str]]:
    """Quoted texts that mean the time of the query, by the type or the conversion before them."""
    for place, token in enumerate(tokens):
        if token.kind is not TokenKind.TEXT or not is_moment(token.value.lstrip("rR")[1:-1]):
            continue
        before = [one.value.casefold() for one in tokens[max(place - 2, 0) : place]]
        behind = [one.value.casefold() for one in tokens[place + 1 : place + 3]]
        is_typed = before[-1:] != [] and before[-1] in _TYPES
        is_converted = before[-1:] == ["("] and before[0] in _CONVERSIONS
        is_cast = behind[:1] in (["as"], ["::"]) and behind[-1] in _TYPES
        if is_typed or is_converted or is_cast:
            shown = token.value
            if is_typed:
                shown = f"{before[-1].upper()} {token.value}"
            elif is_converted:
                shown = f"{before[0]}({token.value})"
            yield Determinism.SESSION, shown


def hint_for(found: Iterable[str], determinism: Determinism) -> str:
    """The fix."""
    names = {one.partition("(")[0] for one in found}
    if names & {"uuid", "monotonically_increasing_id", "randstr"}:
        return (
            "make a key of columns that identify the row, such as sha2(concat_ws('|', a, b), 256)"
        )
    if names & {"input_file_name", "input_file_block_start", "input_file_block_length"}:
        return "capture the part of the path that is needed in sourceUriPrefix, such as {day:DATE}"
    if determinism is Determinism.RANDOM:
        return "for a sample take a hash of a column, such as pmod(xxhash64(id), 100) < 10"
    if determinism is Determinism.ORDER:
        return (
            "use min, max, or max_by over a unique column; sort an array by sort_array(...); "
            "write ORDER BY before LIMIT"
        )
    return (
        "use a column of the data, or the snapshot's time in the dataQuery of a complexVirtual "
        "source: timestamp_seconds({{ SNAPSHOT | UNIX_SECONDS }}); a column that is called so "
        "stands in backticks"
    )
