package com.acme.ui;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;

/** Panels listen to prices. In leak mode, a closed panel does not unsubscribe. */
class DashboardApp {
    private static final int PANELS = 4_000;

    static final PriceFeed feed = new PriceFeed();

    private final TreeMap<String, Double> instruments = new TreeMap<>();
    private final Random random = new Random(5);

    private DashboardApp() {
        for (int i = 0; i < 15_000; i++) {
            instruments.put("ISIN" + i, random.nextDouble());
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < PANELS; i++) {
            DashboardPanel panel = new DashboardPanel("panel " + i);
            panel.open(feed);
            if (i % 1000 == 0) {
                feed.publish("ISIN" + i, random.nextDouble());
            }
            if (!leak) {
                panel.close(feed);
            }
        }
        instruments.replaceAll((name, price) -> price * 1.01);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DashboardApp app = new DashboardApp();
        for (int phase = 1; phase <= 3; phase++) {
            app.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

interface PriceListener {
    void priceChanged(String instrument, double price);
}

class PriceFeed {
    private final List<PriceListener> listeners = new ArrayList<>();

    void subscribe(PriceListener listener) {
        listeners.add(listener);
    }

    void unsubscribe(PriceListener listener) {
        listeners.remove(listener);
    }

    void publish(String instrument, double price) {
        for (PriceListener listener : listeners) {
            listener.priceChanged(instrument, price);
        }
    }
}

class DashboardPanel implements PriceListener {
    private final String title;
    private final double[] chart = new double[30];
    private int at;

    DashboardPanel(String title) {
        this.title = title;
    }

    void open(PriceFeed feed) {
        feed.subscribe(this);
    }

    void close(PriceFeed feed) {
        feed.unsubscribe(this);
    }

    @Override
    public void priceChanged(String instrument, double price) {
        chart[at++ % chart.length] = price;
    }

    @Override
    public String toString() {
        return title;
    }
}
