import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's REST catalog over tables of a database, until its input ends: {@code address port url user password
 * folder}, and Hadoop's settings of where tables lie, each a {@code key=value}.
 */
class Catalog {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = Map.of(
            "type", "jdbc", "uri", arguments[2], "jdbc.user", arguments[3],
            "jdbc.password", arguments[4], "warehouse", arguments[5],
            "jdbc.schema-version", "V1");
        var files = new Configuration();
        for (int index = 6; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            files.set(setting[0], setting[1]);
        }
        var catalog = CatalogUtil.buildIcebergCatalog("served", settings, files);
        var servlet = new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
        Server server = new Server(new java.net.InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])));
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
