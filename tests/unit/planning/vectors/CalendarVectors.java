// Writes calendar.csv: what java.time answers for random moves around clock changes.
//   java CalendarVectors.java > calendar.csv
// Rows: kind,zone,start,year,month,week,day,nanos,factor,result
//   plus, minus: start and result are epoch nanoseconds; the parts are multiplied by factor first.
//   local: start is a local date-time, result its epoch nanoseconds; the parts are empty.
// Dates stay within 1970 to 2024: newer rules differ between tz databases, as
// do corrected histories (Asia/Tehran in 1979, for one, which is why it is not here).
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.zone.ZoneOffsetTransition;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

public class CalendarVectors {
    static final String[] ZONES = {
        "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Europe/Dublin",
        "America/New_York", "Australia/Melbourne", "America/Caracas", "Pacific/Kwajalein",
        "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca", "Europe/London", "UTC"};
    static final Instant FIRST = Instant.parse("1970-01-05T00:00:00Z");
    static final Instant LAST = Instant.parse("2024-12-01T00:00:00Z");
    static final long DAY = 86400L;

    public static void main(String[] arguments) {
        Random random = new Random(20200131);
        System.out.println("kind,zone,start,year,month,week,day,nanos,factor,result");
        for (String name : ZONES) {
            ZoneId zone = ZoneId.of(name);
            List<ZoneOffsetTransition> changes = changes(zone);
            for (int i = 0; i < 220; i++) move(random, zone, changes);
            for (int i = 0; i < 80; i++) local(random, zone, changes);
        }
    }

    static List<ZoneOffsetTransition> changes(ZoneId zone) {
        List<ZoneOffsetTransition> found = new ArrayList<>();
        ZoneOffsetTransition next = zone.getRules().nextTransition(FIRST);
        while (next != null && next.getInstant().isBefore(LAST)) {
            found.add(next);
            next = zone.getRules().nextTransition(next.getInstant());
        }
        return found;
    }

    /** An instant within hours of a clock change, or anywhere. */
    static Instant near(Random random, List<ZoneOffsetTransition> changes) {
        if (changes.isEmpty() || random.nextInt(8) == 0) {
            long span = LAST.getEpochSecond() - FIRST.getEpochSecond();
            return FIRST.plusSeconds((long) (random.nextDouble() * span)).plusNanos(random.nextInt(1_000_000_000));
        }
        Instant change = changes.get(random.nextInt(changes.size())).getInstant();
        long minutes = random.nextInt(8) == 0 ? random.nextInt(60 * 60) - 30 * 60 : random.nextInt(360) - 180;
        return change.plusSeconds(60 * minutes).plusNanos(random.nextInt(3) == 0 ? random.nextInt(1_000_000_000) : 0);
    }

    static void move(Random random, ZoneId zone, List<ZoneOffsetTransition> changes) {
        while (true) {
            long year = part(random, 3), month = part(random, 14), week = part(random, 5), day = part(random, 40);
            long nanos = random.nextInt(3) == 0 ? random.nextInt(30) * 3_600_000_000_000L + random.nextInt(1000) : 0;
            long factor = random.nextInt(3) == 0 ? random.nextInt(7) : 1;
            boolean forward = random.nextBoolean();
            ZonedDateTime target = near(random, changes).atZone(zone);
            long sign = forward ? factor : -factor;
            // Half of the cases end near a change, the others begin there.
            ZonedDateTime start = random.nextBoolean() ? target : apply(target, -sign, year, month, week, day, nanos);
            ZonedDateTime result = apply(start, sign, year, month, week, day, nanos);
            if (within(start) && within(result)) {
                print(forward ? "plus" : "minus", zone, epoch(start), year + "," + month + "," + week + "," + day
                    + "," + nanos + "," + factor, epoch(result));
                return;
            }
        }
    }

    static void local(Random random, ZoneId zone, List<ZoneOffsetTransition> changes) {
        LocalDateTime local = near(random, changes).atZone(zone).toLocalDateTime();
        if (!changes.isEmpty() && random.nextBoolean()) {
            ZoneOffsetTransition change = changes.get(random.nextInt(changes.size()));
            LocalDateTime first = change.isGap() ? change.getDateTimeBefore() : change.getDateTimeAfter();
            long seconds = Math.abs(change.getDuration().getSeconds());
            local = first.plusSeconds((long) (random.nextDouble() * seconds));
        }
        if (random.nextInt(4) == 0) local = local.toLocalDate().atStartOfDay();
        ZonedDateTime result = ZonedDateTime.of(local, zone);
        if (within(result)) print("local", zone, local.toString(), ",,,,,", epoch(result));
    }

    static ZonedDateTime apply(ZonedDateTime start, long sign, long year, long month, long week, long day, long nanos) {
        return start.plusYears(sign * year).plusMonths(sign * month).plusWeeks(sign * week).plusDays(sign * day)
            .plusNanos(sign * nanos);
    }

    static long part(Random random, int bound) {
        return random.nextInt(2) == 0 ? 0 : random.nextInt(bound);
    }

    static boolean within(ZonedDateTime moment) {
        return moment.toInstant().isAfter(FIRST) && moment.toInstant().isBefore(LAST);
    }

    static String epoch(ZonedDateTime moment) {
        Instant instant = moment.toInstant();
        return String.valueOf(instant.getEpochSecond() * 1_000_000_000L + instant.getNano());
    }

    static void print(String kind, ZoneId zone, String start, String parts, String result) {
        System.out.println(kind + "," + zone.getId() + "," + start + "," + parts + "," + result);
    }
}
