import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One OpenSearch node until its standard input ends: {@code Server <data folder> <http port>}. */
public class Server {
    public static void main(String[] arguments) throws Exception {
        try (OpenSearchRunner runner = new OpenSearchRunner()) {
            runner.onBuild((number, settings) -> {
                settings.put("discovery.type", "single-node");
                settings.put("network.host", "127.0.0.1");
                settings.put("http.port", arguments[1]);
                settings.put("transport.port", "0");
                settings.put("action.destructive_requires_name", "true");
            }).build(OpenSearchRunner.newConfigs().basePath(arguments[0]).numOfNode(1).useLogger());
            while (System.in.read() >= 0) { }
        }
        System.exit(0);
    }
}
