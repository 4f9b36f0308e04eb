package com.acme.audit;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Writes an audit trail. In leak mode, events stay in a static list after they are stored. */
class AuditService {
    private static final int EVENTS = 12_000;

    private final Random random = new Random(2);
    private final Map<String, Account> recent = new LruMap<>(8_000);
    private final boolean leak;
    private long checksum;

    private AuditService(boolean leak) {
        this.leak = leak;
    }

    private void work() {
        for (int i = 0; i < EVENTS; i++) {
            String owner = "owner" + random.nextInt(30_000);
            Account account = recent.computeIfAbsent(owner, Account::new);
            account.balance += random.nextInt(100);
            AuditTrail.events.add(
                    new AuditEvent(account.number, "transfer of " + random.nextInt(100_000), i));
        }
        for (AuditEvent event : AuditTrail.events) {
            checksum += event.action.length();
        }
        if (!leak) {
            AuditTrail.events.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        AuditService service = new AuditService(args[0].equals("leak"));
        // Fill the cache of accounts before the first dump, so that it does not grow between the dumps.
        for (int i = 0; i < 8_000; i++) {
            service.recent.put("owner" + i, new Account("owner" + i));
        }
        for (int phase = 1; phase <= 3; phase++) {
            service.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class AuditTrail {
    static final List<AuditEvent> events = new ArrayList<>();
}

class AuditEvent {
    final String account;
    final String action;
    final long sequence;

    AuditEvent(String account, String action, long sequence) {
        this.account = account;
        this.action = action;
        this.sequence = sequence;
    }
}

class Account {
    final String owner;
    final String number;
    long balance;

    Account(String owner) {
        this.owner = owner;
        this.number = "DE" + Integer.toUnsignedString(owner.hashCode());
    }
}

/** A cache with a correct size limit. */
class LruMap<K, V> extends LinkedHashMap<K, V> {
    private final int limit;

    LruMap(int limit) {
        super(16, 0.75f, true);
        this.limit = limit;
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > limit;
    }
}
