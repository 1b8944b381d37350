import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's REST catalog over tables of a database, until its input ends: {@code port url user password folder}. */
class Catalog {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = Map.of(
            "type", "jdbc", "uri", arguments[1], "jdbc.user", arguments[2],
            "jdbc.password", arguments[3], "warehouse", arguments[4],
            "jdbc.schema-version", "V1");
        var catalog = CatalogUtil.buildIcebergCatalog("served", settings, new Configuration());
        var servlet = new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
        Server server = new Server(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        var context = new ServletContextHandler();
        context.addServlet(new ServletHolder(servlet), "/*");
        server.setHandler(context);
        server.start();
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        server.stop();
        System.exit(0);
    }
}
