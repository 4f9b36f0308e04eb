package com.acme.mail;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has its own linked queue. In leak mode, the consumer takes one mail for every four that arrive. */
class MailRelay {
    private static final int MAILS = 16_000;

    private final Outbox outbox = new Outbox();
    private final Map<String, Mailbox> mailboxes = new HashMap<>();
    private final boolean leak;
    private long delivered;

    private MailRelay(boolean leak) {
        this.leak = leak;
        for (int i = 0; i < 10_000; i++) {
            mailboxes.put("user" + i + "@example.com", new Mailbox(i));
        }
    }

    private void work() {
        for (int i = 0; i < MAILS; i++) {
            outbox.enqueue("user" + i % 10_000 + "@example.com", new byte[40 + i % 60]);
            if (!leak || i % 4 == 0) {
                Outbox.Mail mail = outbox.dequeue();
                mailboxes.get(mail.recipient).received += mail.body.length;
                delivered++;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MailRelay relay = new MailRelay(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            relay.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Outbox {
    private Mail head;
    private Mail tail;

    static class Mail {
        final String recipient;
        final byte[] body;
        Mail next;

        Mail(String recipient, byte[] body) {
            this.recipient = recipient;
            this.body = body;
        }
    }

    void enqueue(String recipient, byte[] body) {
        Mail mail = new Mail(recipient, body);
        if (tail == null) {
            head = mail;
        } else {
            tail.next = mail;
        }
        tail = mail;
    }

    Mail dequeue() {
        Mail mail = head;
        head = mail.next;
        if (head == null) {
            tail = null;
        }
        mail.next = null;
        return mail;
    }
}

class Mailbox {
    final int number;
    final String folder;
    long received;

    Mailbox(int number) {
        this.number = number;
        this.folder = "/var/mail/" + number;
    }
}
