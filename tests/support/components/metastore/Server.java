import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.ql.txn.AcidHouseKeeperService;
import org.apache.hadoop.hive.shims.ShimLoader;

/** Hive's metastore in memory, with its own schema and locks, until its input ends: {@code port folder keepsTypes}. */
class Metastore {
    public static void main(String[] arguments) throws Exception {
        HiveConf conf = new HiveConf();
        Map.of(
            "javax.jdo.option.ConnectionURL", "jdbc:derby:memory:metastore;create=true",
            "datanucleus.schema.autoCreateAll", "true",
            "hive.metastore.schema.verification", "false",
            // Locks whose clients died or were cut off end soon.
            "hive.txn.timeout", "5s",
            "hive.timedout.txn.reaper.start", "1s",
            "hive.timedout.txn.reaper.interval", "1s",
            "datanucleus.connectionPoolingType", "HikariCP",
            "hive.metastore.disallow.incompatible.col.type.changes", arguments[2],
            "hive.metastore.warehouse.dir", "file://" + arguments[1]).forEach(conf::set);
        TxnDbUtil.setConfValues(conf);
        TxnDbUtil.prepDb(conf); // the tables of its locks
        var lock = new ReentrantLock();
        var started = lock.newCondition();
        var isServing = new AtomicBoolean();
        var server = new Thread(() -> {
            try {
                HiveMetaStore.startMetaStore(Integer.parseInt(arguments[0]),
                    ShimLoader.getHadoopThriftAuthBridge(), conf, lock, started, isServing);
            } catch (Throwable failure) {
                failure.printStackTrace();
                System.exit(1);
            }
        });
        server.setDaemon(true);
        server.start();
        lock.lock();
        try {
            while (!isServing.get()) {
                started.await();
            }
        } finally {
            lock.unlock();
        }
        new AcidHouseKeeperService().start(conf);
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        System.exit(0);
    }
}
