import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one data node until its standard input ends: {@code Server <data folder> <port>}. */
public class Server {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("dfs.permissions.enabled", "true");
        settings.set("dfs.namenode.fs-limits.min-block-size", "1024");
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings, new File(arguments[0]))
                .nameNodePort(Integer.parseInt(arguments[1])).numDataNodes(1).build()) {
            cluster.waitActive();
            System.out.println("ready");
            while (System.in.read() >= 0) { }
        }
        System.exit(0);
    }
}
