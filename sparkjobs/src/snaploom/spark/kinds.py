"""Kinds of nodes in Spark's trees that user SQL may make; all others are refused.

Names are those of classes without Spark's package in front. Other expressions either run something
(user functions, programs, calls by name), reads something (files, tables, variables), or cannot be
the outcome of a query.
"""

from collections.abc import Mapping
from types import MappingProxyType

CATALYST = "org.apache.spark.sql.catalyst."
"""Package of every class on these lists."""

_ROW_VALUES = """
    Add Alias And AttributeReference BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast
    Coalesce Collate Concat CreateNamedStruct CurrentDate CurrentTime CurrentTimestamp CurrentUser
    Divide EqualNullSafe EqualTo Extract GreaterThan GreaterThanOrEqual ILike If In IntegralDivide
    IsNotNull IsNotUnknown IsNull IsUnknown LambdaFunction LessThan LessThanOrEqual Like LikeAll
    LikeAny Literal LocalTimestamp Multiply NamedArgumentExpression Not NotLikeAll NotLikeAny Or
    Overlay RLike Remainder
    ShiftLeft ShiftRight ShiftRightUnsigned StringLocate StringTrim StringTrimBoth StringTrimLeft
    StringTrimRight Substring Subtract TimestampAdd TimestampDiff UnaryMinus UnaryPositive
    UnresolvedCollation UnresolvedNamedLambdaVariable
"""
_AGGREGATES = "aggregate.AggregateExpression aggregate.AnyValue aggregate.First aggregate.Last"
_OF_QUERIES = """
    Cube CurrentRow Exists GroupingSets InSubquery LateralSubquery ListQuery
    PivotFirst Rollup ScalarSubquery SpecifiedWindowFrame UnboundedFollowing UnboundedPreceding
    UnresolvedWindowExpression UnspecifiedFrame WindowExpression WindowSpecDefinition
"""


def _named(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{package}.{name}" for name in names.split())


PARSED_VALUES = _named("expressions", _ROW_VALUES) | _named(
    "analysis", "UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction"
)
"""Parsed expressions that make a value of one row."""
PARSED_AGGREGATES = _named("expressions", f"{_AGGREGATES} SortOrder")
"""Parsed expressions that make a value of many rows, besides functions."""
PARSED_OF_QUERIES = _named("expressions", _OF_QUERIES) | _named(
    "analysis",
    "MultiAlias UnresolvedAlias UnresolvedGenerator UnresolvedOrdinal UnresolvedStar"
    " UnresolvedStarExceptOrReplace",
)
"""Parsed expressions that only a query may have."""

PARSED_PLANS = _named(
    "plans.logical",
    """
    Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll
    LocalLimit Offset OneRowRelation Pivot Project Repartition RepartitionByExpression Sample Sort
    SubqueryAlias Union Unpivot UnresolvedWith WithWindowDefinition
    """,
) | _named(
    "analysis",
    """
    UnresolvedHaving UnresolvedInlineTable UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
    """,
)
"""Parts of a parsed query that neither read by themselves nor run anything; what relations and
functions they name is judged apart."""

RESOLVED_PLANS = _named(
    "plans.logical",
    """
    Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit
    Intersect Join LateralJoin LimitAll LocalLimit LocalRelation Offset OneRowRelation Project
    Repartition RepartitionByExpression Sample Sort SubqueryAlias Union UnionLoop UnionLoopRef
    Window WithCTE
    """,
) | _named("analysis", "ResolvedInlineTable")
"""Parts of a resolved plan above the frames that it may read."""

RESOLVED_EXPRESSIONS = _named(
    "expressions",
    """
    Abs Acos Acosh Add AddMonths AesDecrypt AesEncrypt Alias And ApproxTopKEstimate ArrayAggregate
    ArrayAppend ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayExists ArrayFilter
    ArrayForAll ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin ArrayPosition ArrayPrepend
    ArrayRemove ArrayRepeat ArraySize ArraySort ArrayTransform ArrayUnion ArraysOverlap ArraysZip
    Ascii Asin Asinh AssertTrue Atan Atan2 Atanh AttributeReference BRound Base32 Base64 Between
    Bin BinaryPad BinaryPredicate BitLength BitmapAndAgg BitmapBitPosition BitmapBucketNumber
    BitmapConstructAgg BitmapCount BitmapOrAgg BitwiseAnd BitwiseCount BitwiseGet BitwiseNot
    BitwiseOr BitwiseXor CaseWhen Cast Cbrt Ceil CheckOverflow CheckOverflowInSum Chr Coalesce
    Collate Collation CollationKey CommonExpressionDef CommonExpressionRef Concat ConcatWs
    Contains Conv ConvertTimezone Cos Cosh Cot CounterDiff CounterDiffWithStartTime Crc32
    CreateArray CreateMap CreateNamedStruct Csc CsvToStructs Cube CumeDist CurrentCatalog
    CurrentDatabase CurrentDate CurrentPath CurrentRow CurrentTime CurrentTimeZone
    CurrentTimestamp CurrentTimestampNanos CurrentUser DateAdd DateAddInterval DateAddYMInterval
    DateDiff DateFormatClass DateFromUnixDate DateSub DatetimeSub DayName DayOfMonth DayOfWeek
    DayOfYear DecimalAddNoOverflowCheck DecimalDivideWithOverflowCheck
    DecimalSubtractNoOverflowCheck Decode DenseRank Divide DivideDTInterval DivideInterval
    DivideYMInterval DropField ElementAt Elt Encode EndsWith EqualNull EqualNullSafe EqualTo
    EulerNumber Exists Exp Explode Expm1 Extract ExtractANSIIntervalDays ExtractANSIIntervalHours
    ExtractANSIIntervalMinutes ExtractANSIIntervalMonths ExtractANSIIntervalSeconds
    ExtractANSIIntervalYears ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes
    ExtractIntervalMonths ExtractIntervalSeconds ExtractIntervalYears Factorial FindInSet Flatten
    Floor FormatNumber FormatString FromAvro FromUTCTimestamp FromUnixTime GeneratorOuter Get
    GetArrayItem GetArrayStructFields GetJsonObject GetMapValue GetStructField GetTimestamp
    GreaterThan GreaterThanOrEqual Greatest Grouping GroupingID GroupingSets Hex HllSketchEstimate
    HllUnion Hmac Hour HoursOfTime Hypot ILike If In InSet InSubquery InitCap Inline
    InputFileBlockLength InputFileBlockStart InputFileName IntegralDivide IsNaN IsNotNull
    IsNotUnknown IsNull IsUnknown IsValidUTF8 JaroWinkler JsonObjectKeys JsonToStructs JsonTuple
    KllSketchGetNBigint KllSketchGetNDouble KllSketchGetNFloat KllSketchGetQuantileBigint
    KllSketchGetQuantileDouble KllSketchGetQuantileFloat KllSketchGetRankBigint
    KllSketchGetRankDouble KllSketchGetRankFloat KllSketchMergeBigint KllSketchMergeDouble
    KllSketchMergeFloat KllSketchToStringBigint KllSketchToStringDouble KllSketchToStringFloat
    KnownFloatingPointNormalized KnownNotNull KnownNullable Lag LambdaFunction LastDay
    LateralColumnAliasReference LateralSubquery Lead Least Left Length LengthOfJsonArray LessThan
    LessThanOrEqual Levenshtein Like LikeAll LikeAny ListQuery Literal LocalTimestamp
    LocalTimestampNanos Log Log10 Log1p Log2 Logarithm Lower Luhncheck MakeDTInterval MakeDate
    MakeDecimal MakeInterval MakeTime MakeTimestamp MakeTimestampFromDateTime MakeTimestampLTZ
    MakeTimestampLTZNanos MakeTimestampNTZ MakeTimestampNTZNanos MakeValidUTF8 MakeYMInterval
    MapConcat MapContainsKey MapEntries MapFilter MapFromArrays MapFromEntries MapKeys MapSort
    MapValues MapZipWith Mask Md5 MicrosToTimestamp MillisToTimestamp Minute MinutesOfTime
    MonotonicallyIncreasingID Month MonthName MonthsBetween Multiply MultiplyDTInterval
    MultiplyInterval MultiplyYMInterval Murmur3Hash NTile NaNvl NamedLambdaVariable
    NanosToTimestamp NextDay Not NotLikeAll NotLikeAny Now NthValue NullIf NullIfResult NullIfZero
    Nvl Nvl2 OctetLength Or OuterReference OuterScopeReference Overlay ParseToDate
    ParseToTimestamp ParseUrl PercentRank Pi Pmod PosExplode Pow PreciseTimestampConversion
    Quarter Quote RLike RaiseError Rand RandStr Randn Rank RegExpCount RegExpExtract
    RegExpExtractAll RegExpInStr RegExpReplace RegExpSubStr Remainder ReplicateRows
    ResolvedCollation Reverse Right Rint Rollup Round RoundCeil RoundFloor RowNumber
    ScalarSubquery SchemaOfAvro SchemaOfCsv SchemaOfJson SchemaOfXml Sec Second SecondWithFraction
    SecondWithFractionNanos SecondsOfTime SecondsOfTimeWithFraction SecondsToTimestamp
    SemiStructuredExtract Sentences Sequence SessionWindow Sha1 Sha2 ShiftLeft ShiftRight
    ShiftRightUnsigned Shuffle Signum Sin Sinh Size Slice SortArray SortOrder SoundEx
    SparkPartitionID SparkVersion SpecifiedWindowFrame SplitPart Sqrt Stack StartsWith
    StringDecode StringInstr StringInstrWithOccurrence StringLPad StringLocate StringRPad
    StringRepeat StringReplace StringSpace StringSplit StringSplitSQL StringToMap StringTranslate
    StringTrim StringTrimBoth StringTrimLeft StringTrimRight StructsToCsv StructsToJson
    StructsToXml Substring SubstringIndex Subtract SubtractDates SubtractTimes SubtractTimestamps
    Tan Tanh ThetaDifference ThetaIntersection ThetaSketchEstimate ThetaUnion TimeAddInterval
    TimeBucket TimeDiff TimeFromMicros TimeFromMillis TimeFromSeconds TimeToMicros TimeToMillis
    TimeToSeconds TimeTrunc TimeWindow TimestampAdd TimestampAddInterval TimestampAddYMInterval
    TimestampDiff ToAvro ToBinary ToCharacter ToDegrees ToNumber ToRadians ToTime ToUTCTimestamp
    ToUnixTimestamp TransformKeys TransformValues TruncDate TruncTimestamp TryAdd TryAesDecrypt
    TryDivide TryElementAt TryEval TryMakeInterval TryMakeTimestamp TryMakeTimestampFromDateTime
    TryMod TryMultiply TryParseUrl TrySubtract TryToBinary TryToNumber TryUrlDecode
    TryValidateUTF8 TupleDifferenceDouble TupleDifferenceInteger TupleDifferenceThetaDouble
    TupleDifferenceThetaInteger TupleIntersectionDouble TupleIntersectionInteger
    TupleIntersectionThetaDouble TupleIntersectionThetaInteger TupleSketchEstimateDouble
    TupleSketchEstimateInteger TupleSketchSummaryDouble TupleSketchSummaryInteger
    TupleSketchThetaDouble TupleSketchThetaInteger TupleUnionDouble TupleUnionInteger
    TupleUnionThetaDouble TupleUnionThetaInteger TypeOf TypedNullLiteral UnBase32 UnBase64
    UnaryMinus UnaryPositive UnboundedFollowing UnboundedPreceding Unhex Uniform UnixDate
    UnixMicros UnixMillis UnixNanos UnixSeconds UnixTimestamp UnscaledValue UnspecifiedFrame
    UpCast UpdateFields Upper UrlDecode UrlEncode Uuid ValidateUTF8 VectorAvg
    VectorCosineSimilarity VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize
    VectorSum WeekDay WeekOfYear WidthBucket WindowExpression WindowSpecDefinition WindowTime With
    WithField XmlToStructs XxHash64 Year YearOfWeek ZeroIfNull ZipWith
    aggregate.AggregateExpression aggregate.AnyValue aggregate.ApproxTopK
    aggregate.ApproxTopKAccumulate aggregate.ApproxTopKCombine aggregate.ApproximatePercentile
    aggregate.Average aggregate.BitAndAgg aggregate.BitOrAgg aggregate.BitXorAgg aggregate.BoolAnd
    aggregate.BoolOr aggregate.CollectList aggregate.CollectSet aggregate.CollectUnion
    aggregate.Corr aggregate.Count aggregate.CountIf aggregate.CountMinSketchAgg
    aggregate.CovPopulation aggregate.CovSample aggregate.First aggregate.HistogramNumeric
    aggregate.HllSketchAgg aggregate.HllUnionAgg aggregate.HyperLogLogPlusPlus
    aggregate.KllMergeAggBigint aggregate.KllMergeAggDouble aggregate.KllMergeAggFloat
    aggregate.KllSketchAggBigint aggregate.KllSketchAggDouble aggregate.KllSketchAggFloat
    aggregate.Kurtosis aggregate.Last aggregate.ListAgg aggregate.Max aggregate.MaxBy
    aggregate.MaxMinByK aggregate.Median aggregate.Min aggregate.MinBy aggregate.Mode
    aggregate.Percentile aggregate.PercentileCont aggregate.PercentileDisc aggregate.PivotFirst
    aggregate.RegrAvgX aggregate.RegrAvgY aggregate.RegrCount aggregate.RegrIntercept
    aggregate.RegrR2 aggregate.RegrReplacement aggregate.RegrSXX aggregate.RegrSXY
    aggregate.RegrSYY aggregate.RegrSlope aggregate.Skewness aggregate.StddevPop
    aggregate.StddevSamp aggregate.Sum aggregate.ThetaIntersectionAgg aggregate.ThetaSketchAgg
    aggregate.ThetaUnionAgg aggregate.TupleIntersectionAggDouble
    aggregate.TupleIntersectionAggInteger aggregate.TupleSketchAggDouble
    aggregate.TupleSketchAggInteger aggregate.TupleUnionAggDouble aggregate.TupleUnionAggInteger
    aggregate.VariancePop aggregate.VarianceSamp st.ST_AsBinary st.ST_GeogFromWKB
    st.ST_GeomFromWKB st.ST_SetSrid st.ST_Srid variant.IsValidVariant variant.IsVariantNull
    variant.ParseJson variant.SchemaOfVariant variant.SchemaOfVariantAgg variant.ToVariantObject
    variant.UnwrapVariantCastError variant.VariantArrayAppend variant.VariantDelete
    variant.VariantExplode variant.VariantGet variant.VariantInsert variant.VariantSet
    variant.VariantStripNulls
    """,
)
"""Expressions of a resolved plan: those that Spark's listed functions and its grammar come to.

Not here, among others: `CallMethodViaReflection`, `TryReflect`, `ApplyFunctionExpression`, user
functions of every language, `objects.*` (`StaticInvoke` and `Invoke` call Java by name),
`VariableReference`, protobuf, XPath and everything that is still unresolved."""

USER_FUNCTIONS = frozenset(
    {
        "org.apache.spark.sql.catalyst.expressions.PythonUDAF",
        "org.apache.spark.sql.catalyst.expressions.PythonUDF",
        "org.apache.spark.sql.catalyst.expressions.ScalaUDF",
        "org.apache.spark.sql.catalyst.expressions.TranspiledPythonUDF",
        "org.apache.spark.sql.execution.aggregate.ScalaAggregator",
        "org.apache.spark.sql.execution.aggregate.ScalaUDAF",
        "org.apache.spark.sql.hive.HiveGenericUDF",
        "org.apache.spark.sql.hive.HiveSimpleUDF",
        "org.apache.spark.sql.hive.HiveUDAFFunction",
    }
)
"""Expressions of functions that somebody made; each is judged by the name of the function."""

_TEXTS = "dateformat timestampformat timestampntzformat timeformat timezone locale mode"
_READ = (
    f"{_TEXTS} columnnameofcorruptrecord enabledatetimeparsingfallback prefersdecimal preferdate"
)
_JSON = """
    primitivesasstring allowcomments allowunquotedfieldnames allowsinglequotes
    allownumericleadingzeros allowbackslashescapinganycharacter allowunquotedcontrolchars
    allownonnumericnumbers dropfieldifallnull multiline linesep encoding maxnestingdepth maxnumlen
    maxstringlen samplingratio
"""
_CSV = """
    sep delimiter quote escape chartoescapequoteescaping comment header inferschema
    ignoreleadingwhitespace ignoretrailingwhitespace nullvalue emptyvalue nanvalue positiveinf
    negativeinf maxcolumns maxcharspercolumn unescapedquotehandling multiline linesep encoding
    charset enforceschema samplingratio
"""
_XML = """
    rowtag samplingratio excludeattribute treatemptyvaluesasnulls attributeprefix valuetag
    wildcardcolname ignoresurroundingspaces ignorenamespace inferschema nullvalue encoding charset
    maxcharsperrecord
"""
_AVRO = """
    mode datetimerebasemode positionalfieldmatching enablestableidentifiersforuniontype
    stableidentifierprefixforuniontype recursivefieldmaxdepth
"""
_TO_JSON = "ignorenullfields pretty sortkeys writenonasciicharacterascodepoint"
_TO_CSV = "sep delimiter quote escape chartoescapequoteescaping quoteall escapequotes"
_TO_CSV_TOO = "ignoreleadingwhitespace ignoretrailingwhitespace nullvalue emptyvalue header"
_TO_XML = "rowtag roottag declaration arrayelementname attributeprefix valuetag nullvalue indent"

OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(options.split())
        for names, options in (
            ("from_json schema_of_json", f"{_READ} {_JSON}"),
            ("from_csv schema_of_csv", f"{_READ} {_CSV}"),
            ("from_xml schema_of_xml", f"{_READ} {_XML}"),
            ("from_avro schema_of_avro", _AVRO),
            ("to_json", f"{_TEXTS} {_TO_JSON}"),
            ("to_csv", f"{_TEXTS} {_TO_CSV} {_TO_CSV_TOO}"),
            ("to_xml", f"{_TEXTS} {_TO_XML}"),
        )
        for name in names.split()
    }
)
"""Options that the map may hold, in lower case, by function. Not here: whatever holds a path or a
URL (`rowValidationXSDPath`, `avroSchemaUrl`), and what only files have."""

OPTIONS_PLACE: Mapping[str, int] = MappingProxyType(
    {name: 2 if name.startswith("from_") else 1 for name in OPTIONS}
)
"""Number of the argument that is a function's map of options, from 0."""

TYPE_PLACE: Mapping[str, int] = MappingProxyType(
    {
        "from_csv": 1, "from_json": 1, "from_xml": 1, "try_variant_get": 2, "variant_get": 2,
    }
)  # fmt: skip
"""Number of the argument that is a data type as text, from 0. Spark takes JSON there too, in which
a user-defined type is a class by its name: Spark makes an instance of it, and PySpark imports its
module."""

TYPES_OF_EXAMPLES = frozenset({"schema_of_csv", "schema_of_json", "schema_of_xml"})
"""Functions that may stand in place of a type: none of their results is JSON."""

OPTIONS_OF_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "JsonToStructs": "from_json",
        "SchemaOfJson": "schema_of_json",
        "StructsToJson": "to_json",
        "CsvToStructs": "from_csv",
        "SchemaOfCsv": "schema_of_csv",
        "StructsToCsv": "to_csv",
        "XmlToStructs": "from_xml",
        "SchemaOfXml": "schema_of_xml",
        "StructsToXml": "to_xml",
    }
)
"""The function whose options a resolved expression has, by simple name of its class."""
