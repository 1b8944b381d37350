package snaploom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * Spark's trees as JSON, with every node that hangs on them: not only the children, but whatever a
 * field holds. Node by node and without recursion, because `a + a + ...` is a deep tree.
 */
public final class Trees {
  private static final ObjectMapper JSON = new ObjectMapper();

  public Trees() {}

  /**
   * Parses a text with Spark's parser, under settings that are the same for every session.
   *
   * @param settings names and values in turn.
   */
  public TreeNode parse(
      SparkSession session, final String text, final boolean isQuery, List settings)
      throws Exception {
    final ParserInterface parser = session.sessionState().sqlParser();
    SQLConf conf = session.sessionState().conf().clone();
    for (int i = 0; i < settings.size(); i += 2) {
      conf.setConfString((String) settings.get(i), (String) settings.get(i + 1));
    }
    Object parsed =
        SQLConf.withExistingConf(
            conf,
            new AbstractFunction0() {
              public Object apply() {
                try {
                  return isQuery ? (Object) parser.parsePlan(text) : parser.parseExpression(text);
                } catch (Exception refusal) {
                  return refusal;
                }
              }
            });
    if (parsed instanceof Exception) {
      throw (Exception) parsed;
    }
    return (TreeNode) parsed;
  }

  /**
   * Nodes of a parsed tree, parents first: `[[parent, field, class, {field: value}], ...]`.
   *
   * @param most nodes, behind which no other is looked at: Spark's parser repeats the operand of
   *     `CASE a WHEN 1 ... WHEN 2 ...` for each WHEN, so that a short text can have billions.
   */
  public String parsed(Object root, int most) throws Exception {
    List nodes = new ArrayList();
    Deque open = new ArrayDeque();
    open.add(new Object[] {Integer.valueOf(-1), "", root});
    while (!open.isEmpty() && nodes.size() < most) {
      Object[] next = (Object[]) open.removeLast();
      Integer place = Integer.valueOf(nodes.size());
      Map fields = new LinkedHashMap();
      List entry = new ArrayList();
      entry.add(next[0]);
      entry.add(next[1]);
      entry.add(next[2].getClass().getName());
      entry.add(fields);
      nodes.add(entry);
      Product node = (Product) next[2];
      List below = new ArrayList();
      for (int i = 0; i < node.productArity(); i++) {
        String field = node.productElementName(i);
        List found = new ArrayList();
        fields.put(field, plain(node.productElement(i), found));
        for (int k = 0; k < found.size(); k++) {
          below.add(new Object[] {place, field, found.get(k)});
        }
      }
      Collections.reverse(below);
      open.addAll(below);
    }
    return JSON.writeValueAsString(nodes);
  }

  /**
   * Constructs of a resolved plan above the given plans: lines of a kind and the construct.
   *
   * @param given plans that are not looked into.
   * @param views names of temporary views that are not looked into either.
   */
  public String resolved(LogicalPlan root, List given, List views) throws Exception {
    List lines = new ArrayList();
    Set known = new HashSet();
    Set visited = Collections.newSetFromMap(new IdentityHashMap());
    Deque open = new ArrayDeque();
    open.add(root);
    while (!open.isEmpty()) {
      Object next = open.removeLast();
      if (!visited.add(next) || isGiven(next, given, views)) {
        continue;
      }
      List line = line(next);
      if (known.add(line)) {
        lines.add(line);
      }
      TreeNode node = (TreeNode) next;
      List found = new ArrayList(CollectionConverters.asJava((scala.collection.Seq) node.children()));
      // What was replaced is not kept up to date; what replaces it is its child.
      if (!(node instanceof InheritAnalysisRules)) {
        Product product = (Product) node;
        for (int i = 0; i < product.productArity(); i++) {
          plain(product.productElement(i), found);
        }
      }
      open.addAll(found);
    }
    return JSON.writeValueAsString(lines);
  }

  /**
   * A parsed expression with other expressions in the place of columns.
   *
   * @param names parts of each column's name, whatever their case.
   * @param others what comes into the place of each.
   */
  public Expression replaced(Expression parsed, final List names, final List others) {
    return (Expression)
        parsed.transformUp(
            new AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return place(node, names) >= 0;
              }

              public Object applyOrElse(Object node, Function1 otherwise) {
                int place = place(node, names);
                return place < 0 ? otherwise.apply(node) : others.get(place);
              }
            });
  }

  private static int place(Object node, List names) {
    if (!(node instanceof UnresolvedAttribute)) {
      return -1;
    }
    List own = CollectionConverters.asJava(((UnresolvedAttribute) node).nameParts());
    for (int i = 0; i < names.size(); i++) {
      List name = (List) names.get(i);
      int part = 0;
      while (part < name.size() && part < own.size()
          && ((String) name.get(part)).equalsIgnoreCase((String) own.get(part))) {
        part++;
      }
      if (part == name.size() && part == own.size()) {
        return i;
      }
    }
    return -1;
  }

  private static boolean isGiven(Object node, List given, List views) {
    if (!(node instanceof LogicalPlan)) {
      return false;
    }
    for (int i = 0; i < given.size(); i++) {
      if (node == given.get(i) || ((LogicalPlan) node).sameResult((LogicalPlan) given.get(i))) {
        return true;
      }
    }
    return node instanceof View
        && ((View) node).isTempView()
        && views.contains(((View) node).desc().identifier().unquotedString());
  }

  private static List line(Object node) throws Exception {
    List line = new ArrayList();
    line.add(node instanceof Expression ? "expression" : "plan");
    line.add(node.getClass().getName());
    String detail = "";
    Map options = new LinkedHashMap();
    Product product = (Product) node;
    for (int i = 0; i < product.productArity(); i++) {
      String field = product.productElementName(i);
      Object value = product.productElement(i);
      if (value instanceof scala.collection.Map && node instanceof Expression) {
        options.put(field, plain(value, new ArrayList()));
      } else if (value instanceof Class) {
        detail = ((Class) value).getName() + detail;
      } else if (isName(field) && isUsers(node)) {
        detail = detail + plain(value, new ArrayList());
      } else if (field.equals("targetObject") && value instanceof Literal) {
        Object target = ((Literal) value).value();
        detail = target == null ? "null" : target.getClass().getName();
      }
    }
    line.add(detail);
    line.add(options);
    line.add(moment(node));
    line.add(Boolean.valueOf(!isUsers(node) || ((Expression) node).deterministic()));
    return line;
  }

  /** The constant text that becomes a date or a time here, which may be `now`; empty if none. */
  private static String moment(Object node) {
    if (node instanceof RuntimeReplaceable) {
      return momentOfReplacement((RuntimeReplaceable) node);
    }
    if (!(node instanceof Cast) || !((Cast) node).child().references().isEmpty()) {
      return "";
    }
    String type = ((Cast) node).dataType().typeName();
    if (!type.equals("date") && !type.startsWith("timestamp")) {
      return "";
    }
    try {
      Expression constant = computed(((Cast) node).child(), new IdentityHashMap());
      Object value = constant.foldable() ? constant.eval(null) : null;
      return value instanceof UTF8String ? value.toString() : "";
    } catch (RuntimeException failure) {
      return ""; // Spark meets the same when it computes the constant
    }
  }

  /**
   * An expression as Spark computes it, with what it puts in the place of functions: the functions
   * themselves cannot be computed.
   *
   * @param known what nodes came to before, which may hang on several others.
   */
  private static Expression computed(Expression node, Map known) {
    if (known.containsKey(node)) {
      return (Expression) known.get(node);
    }
    Expression made = node;
    while (made instanceof RuntimeReplaceable) {
      made = ((RuntimeReplaceable) made).replacement();
    }
    List before = CollectionConverters.asJava((scala.collection.Seq) made.children());
    List after = new ArrayList();
    boolean isSame = true;
    for (int i = 0; i < before.size(); i++) {
      after.add(computed((Expression) before.get(i), known));
      isSame = isSame && after.get(i) == before.get(i);
    }
    if (!isSame) {
      made = (Expression) made.withNewChildren(CollectionConverters.asScala(after).toSeq());
    }
    known.put(node, made);
    return made;
  }

  /** Such a text of what Spark puts in the place of a function; each node is visited once. */
  private static String momentOfReplacement(RuntimeReplaceable function) {
    Set visited = Collections.newSetFromMap(new IdentityHashMap());
    Deque open = new ArrayDeque();
    open.add(function.replacement());
    while (!open.isEmpty()) {
      Object next = open.removeLast();
      if (!visited.add(next)) {
        continue;
      }
      if (next instanceof RuntimeReplaceable) {
        open.add(((RuntimeReplaceable) next).replacement());
        continue;
      }
      String found = moment(next);
      if (!found.isEmpty()) {
        return found;
      }
      open.addAll(CollectionConverters.asJava((scala.collection.Seq) ((TreeNode) next).children()));
    }
    return "";
  }

  private static boolean isName(String field) {
    return field.equals("name") || field.equals("udfName") || field.equals("aggregatorName");
  }

  /** Whether a node may be a function that somebody made: Spark's own have no such name. */
  private static boolean isUsers(Object node) {
    String name = node.getClass().getSimpleName();
    return name.endsWith("UDF") || name.endsWith("UDAF") || name.endsWith("UDAFFunction")
        || name.endsWith("UDTF") || name.endsWith("Aggregator");
  }

  /** A value without the nodes in it, which are added to the others found. */
  private static Object plain(Object value, List found) {
    if (value == null || value instanceof String || value instanceof Boolean
        || value instanceof Integer || value instanceof Long) {
      return value;
    }
    if (value instanceof TreeNode) {
      found.add(value);
      return Collections.singletonMap("node", value.getClass().getSimpleName());
    }
    if (value instanceof UTF8String) {
      return value.toString();
    }
    if (value instanceof DataType) {
      return Collections.singletonMap("type", ((DataType) value).typeName());
    }
    if (value instanceof Option) {
      return ((Option) value).isEmpty() ? null : plain(((Option) value).get(), found);
    }
    if (value instanceof scala.collection.Map) {
      List pairs = new ArrayList();
      Iterator entries =
          CollectionConverters.asJava(((scala.collection.Map) value).iterator());
      while (entries.hasNext()) {
        pairs.add(plain(entries.next(), found));
      }
      return Collections.singletonMap("map", pairs);
    }
    if (value instanceof scala.collection.Iterable) {
      return all(CollectionConverters.asJava(((scala.collection.Iterable) value).iterator()), found);
    }
    if (value instanceof Object[]) {
      return all(java.util.Arrays.asList((Object[]) value).iterator(), found);
    }
    if (value instanceof Map) {
      List pairs = new ArrayList();
      Iterator entries = ((Map) value).entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry entry = (Map.Entry) entries.next();
        pairs.add(java.util.Arrays.asList(new Object[] {entry.getKey(), entry.getValue()}));
      }
      return Collections.singletonMap("map", pairs);
    }
    if (value instanceof Product) {
      // Tuples, and small classes such as FunctionIdentifier.
      return all(CollectionConverters.asJava(((Product) value).productIterator()), found);
    }
    return Collections.singletonMap("class", value.getClass().getName());
  }

  private static Object all(Iterator values, List found) {
    List parts = new ArrayList();
    while (values.hasNext()) {
      parts.add(plain(values.next(), found));
    }
    return parts;
  }
}
