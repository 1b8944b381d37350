import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Properties;
import java.util.Scanner;

/**
 * Asks drivers what they make of addresses. Each line read has a word, a class, a URL and
 * properties: `know` asks for the properties that the driver knows, `connect` makes it connect.
 */
public class Drivers {
    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split("\t", -1);
            Driver driver =
                    (Driver) Class.forName(asked[1]).getDeclaredConstructor().newInstance();
            Properties properties = new Properties();
            for (String property : asked[3].split("\u0001")) {
                String[] parts = property.split("=", 2);
                if (parts.length == 2) {
                    properties.setProperty(parts[0], parts[1]);
                }
            }
            String answer =
                    asked[0].equals("know")
                            ? known(driver, asked[2], properties)
                            : connected(driver, asked[2], properties);
            System.out.println(driver.acceptsURL(asked[2]) + "\t" + answer.replace('\n', ' '));
        }
    }

    private static String known(Driver driver, String url, Properties properties)
            throws SQLException {
        StringBuilder names = new StringBuilder();
        for (DriverPropertyInfo known : driver.getPropertyInfo(url, properties)) {
            names.append(known.name).append('=').append(known.value).append('\u0001');
        }
        return names.toString();
    }

    private static String connected(Driver driver, String url, Properties properties) {
        try (Connection connection = driver.connect(url, properties)) {
            return connection == null ? "not mine" : "connected";
        } catch (SQLException error) {
            return error.toString();
        }
    }
}
