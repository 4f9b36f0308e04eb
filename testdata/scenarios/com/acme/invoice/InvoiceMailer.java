package com.acme.invoice;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** One thread mails all invoices. In leak mode, the mail server does not answer, so the executor's queue grows. */
class InvoiceMailer {
    private static final int INVOICES = 12_000;

    private final ExecutorService sender = Executors.newFixedThreadPool(1);
    private final AtomicInteger sent = new AtomicInteger();
    private final CountDownLatch answer;
    private final Map<Integer, String> addresses = new HashMap<>();
    private int number;

    private InvoiceMailer(boolean leak) {
        answer = new CountDownLatch(leak ? 1 : 0);
        for (int i = 0; i < 15_000; i++) {
            addresses.put(i, "customer-" + i + "@example.org");
        }
    }

    private void work() throws InterruptedException {
        for (int i = 0; i < INVOICES; i++) {
            sender.execute(new MailTask(++number, "Invoice number " + number, this));
        }
        while (answer.getCount() == 0 && sent.get() < number) {
            Thread.sleep(5);
        }
    }

    void send(MailTask task) throws InterruptedException {
        answer.await();
        sent.incrementAndGet();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        InvoiceMailer mailer = new InvoiceMailer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            mailer.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        mailer.sender.shutdownNow();
    }
}

class MailTask implements Runnable {
    final int invoice;
    final String subject;
    private final InvoiceMailer mailer;

    MailTask(int invoice, String subject, InvoiceMailer mailer) {
        this.invoice = invoice;
        this.subject = subject;
        this.mailer = mailer;
    }

    @Override
    public void run() {
        try {
            mailer.send(this);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
