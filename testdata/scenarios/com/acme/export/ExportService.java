package com.acme.export;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.LinkedList;
import java.util.List;

/** Writes exports to temporary files. In leak mode, it registers each file for deletion at exit, and the JVM keeps the paths. */
class ExportService {
    private static final int EXPORTS = 9_000;

    private final List<String> columns = new LinkedList<>();
    private final File folder = new File(System.getProperty("java.io.tmpdir"), "acme-exports");
    private int exported;

    private ExportService() {
        for (int i = 0; i < 20_000; i++) {
            columns.add("column " + i);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < EXPORTS; i++) {
            File file = new File(folder, "customer-export-" + exported++ + ".csv");
            if (leak) {
                file.deleteOnExit();
            } else {
                file.delete();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ExportService service = new ExportService();
        for (int phase = 1; phase <= 3; phase++) {
            service.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}
