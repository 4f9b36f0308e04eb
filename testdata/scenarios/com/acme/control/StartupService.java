package com.acme.control;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.time.format.FormatStyle;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;

/**
 * Loads 500 classes, and 1,000 more when features are used for the first time, as programs do at startup. All classes stay, and no
 * more are loaded. Then it continues to work for as long as the loading took. A shorter time would not show whether more classes are
 * loaded.
 */
class StartupService {
    private static final int[] LOADED = {500, 1_500, 1_500, 1_500};

    private final List<String> names;
    private final List<Feature> features = new ArrayList<>();

    private StartupService() throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules");
        names = new ArrayList<>();
        for (String folder : List.of("java.base/java", "java.xml/com/sun/org/apache")) {
            String module = folder.substring(0, folder.indexOf('/'));
            try (Stream<Path> files = Files.walk(modules.resolve(folder))) {
                names.addAll(files.map(file -> modules.resolve(module).relativize(file).toString())
                        .filter(name -> name.endsWith(".class"))
                        .map(name -> name.replace(".class", "").replace('/', '.'))
                        .sorted()
                        .collect(Collectors.toList()));
            }
        }
    }

    private void use(int count) throws Exception {
        for (int i = features.size(); i < count; i++) {
            // Take classes from both ends of the list: one end has the core of the JDK, and the other has classes that few programs need.
            String name = i % 2 == 0 ? names.get(i / 2) : names.get(names.size() - 1 - i / 2);
            features.add(new Feature(name, Class.forName(name, false, null)));
        }
    }

    private void work() throws Exception {
        DocumentBuilderFactory.newInstance().newDocumentBuilder();
        for (Locale locale : List.of(Locale.UK, Locale.FRANCE, Locale.JAPAN)) {
            DateTimeFormatter.ofLocalizedDate(FormatStyle.FULL).withLocale(locale).format(LocalDate.EPOCH);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StartupService service = new StartupService();
        long longest = 0;
        for (int phase = 1; phase <= 4; phase++) {
            long began = System.nanoTime();
            service.use(LOADED[phase - 1]);
            do {
                service.work();
            } while (System.nanoTime() - began < longest);
            longest = Math.max(longest, System.nanoTime() - began);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Feature {
    final String name;
    final Class<?> type;

    Feature(String name, Class<?> type) {
        this.name = name;
        this.type = type;
    }
}
