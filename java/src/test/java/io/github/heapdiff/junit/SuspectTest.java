package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Tests the rules that decide whether a suspect is growth, and the message about a suspect. */
class SuspectTest {
    private static final GrowthOptions OPTIONS = GrowthOptions.defaults().withRounds(5);

    @Test
    void aSuspectAddsObjectsInEachStep() throws Exception {
        assertEquals(1, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(1, growing("growth", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,100,100]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,100,90]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void cachesAndWarmUpPass() throws Exception {
        assertEquals(0, growing("cache", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("warmup", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void theLastStepMustAddAQuarterOfTheFirst() throws Exception {
        assertEquals(1, growing("leak", "[0,40,50]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,50,60]", "[0,500,1000]", OPTIONS).size());
        // If the last step adds more objects than the first step, the suspect counts as growth. Then the number of
        // growing rounds decides if the test fails. It is known, because a snapshot is taken after each measured round
        // of the last step.
        assertEquals(1, growing("leak", "[0,10,60]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void aRoundGrowsIfItExceedsAllRoundsBefore() throws Exception {
        assertEquals(5, growingRounds("[0,3,4,5,6,7,8]", 5));
        assertEquals(4, growingRounds("[0,3,4,5,5,7,8]", 5));
        assertEquals(1, growingRounds("[0,3,3,3,3,3,8]", 5));
        // In this report, the content grows and shrinks.
        assertEquals(2, growingRounds("[0,3,9,3,8,3,10]", 5));
        assertEquals(3, growingRounds("[0,3,5,4,6,5,7]", 5));
        // Only the last two rounds are followed by a snapshot each, so only these rounds count.
        assertEquals(2, growingRounds("[0,3,50,51,52]", 2));
        // In this report, the number of objects does not change, but their bytes grow.
        assertEquals(3, Suspect.all(report("leak", "[1,1,1]", "[0,500,1000]", "[]")).get(0).growingRounds(
                report("leak", "[1,1,1,1,1]", "[0,500,600,900,1000]", "[]"), 3));
        // The report of the measured rounds is empty, so it does not contain the holder. In this case, the result is
        // the number of objects that the last step added (9 - 5 = 4), or the number of rounds if this is smaller.
        Suspect suspect = Suspect.all(report("leak", "[0,5,9]", "[0,500,1000]", "[]")).get(0);
        assertEquals(4, suspect.growingRounds(Map.of(), 50));
        assertEquals(3, suspect.growingRounds(Map.of(), 3));
    }

    @Test
    void theShareOfGrowingRoundsDecides() throws Exception {
        Suspect suspect = Suspect.all(report("leak", "[0,5,10]", "[0,500,1000]", "[]")).get(0);
        assertTrue(new Growth(suspect, 5, 10).fails(OPTIONS));
        assertFalse(new Growth(suspect, 4, 10).fails(OPTIONS));
        // The product of the minimum share of growing rounds (0.7) and the number of rounds (10) may have a rounding
        // error. Still, 7 growing rounds must be enough.
        assertTrue(new Growth(suspect, 7, 10).fails(OPTIONS.withMinGrowingShare(0.7)));
        assertTrue(new Growth(suspect, 10, 10).fails(OPTIONS.withMinGrowingShare(1)));
        assertFalse(new Growth(suspect, 9, 10).fails(OPTIONS.withMinGrowingShare(1)));
    }

    @Test
    void theExcuseMatchesTheFigures() throws Exception {
        assertEquals("the verdict is cache, not leak", excuse("cache", "[0,5,10]"));
        assertEquals("the verdict is warmup, not leak", excuse("warmup", "[0,5,10]"));
        assertEquals("in at least one step of the work, its objects did not grow", excuse("leak", "[0,0,10]"));
        assertEquals("in at least one step of the work, its objects did not grow", excuse("growth", "[9,5]"));
        assertEquals("the second step added less than a quarter of what the first step added", excuse("leak", "[0,50,60]"));
        assertEquals("none", excuse("leak", "[0,5,10]"));
    }

    @Test
    void theSameObjectsGrowInBothSteps() throws Exception {
        assertEquals(1, growing("leak", "[1,1,1]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[1,1,1]", "[0,0,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[1,1,1]", "[0,900,1000]", OPTIONS).size());
    }

    @Test
    void toleratedBytesAreTheLargestGrowthThatPasses() throws Exception {
        assertEquals(0, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS.withToleratedBytes(1000)).size());
        assertEquals(1, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS.withToleratedBytes(999)).size());
    }

    @Test
    void growthTooSmallForASuspectGetsASecondStep() throws Exception {
        assertFalse(Suspect.mayAppear(heap(16_000, 3_199)));
        assertTrue(Suspect.mayAppear(heap(16_000, 3_200)));
        assertFalse(Suspect.mayAppear(heap(16_000, -10_000)));
        // This is a report of an earlier version of heapdiff.
        assertTrue(Suspect.mayAppear(Map.of("delta", Map.of("shallow_bytes", 1L))));
        assertThrows(HeapUndecidedException.class, () -> Suspect.mayAppear(Map.of()));
    }

    @Test
    void aSuspectWithoutFiguresDecidesNothing() {
        assertThrows(HeapUndecidedException.class, () -> growing("leak", "[]", "[0,1]", OPTIONS));
        assertThrows(HeapUndecidedException.class, () -> growing("leak", "[0,null]", "[0,1]", OPTIONS));
    }

    @Test
    void theStackIsNamedIfThereIsOne() throws Exception {
        List<Suspect> found = growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS);
        String with = GrowthMessage.of(measured(found), 10, Optional.of(Path.of("/dumps")));
        assertTrue(with.contains("allocated com.acme.Orders.add(Orders.java:7)"), with);
        assertTrue(with.endsWith("the dumps are in /dumps"), with);
        assertTrue(with.startsWith("the heap grows with each round: com.acme.Orders.open grew by 1,000 bytes in 10 rounds"), with);
        List<Suspect> bare = Suspect.all(report("leak", "[0,5,10]", "[0,500,1000]", "[]"));
        assertFalse(GrowthMessage.of(measured(bare), 10, Optional.empty()).contains("allocated"));
    }

    private static Map<?, ?> heap(long noise, long grown) {
        return Map.of("delta", Map.of("shallow_bytes", grown), "noise_bytes", noise);
    }

    private static List<Suspect> growing(String verdict, String objects, String retained, GrowthOptions options)
            throws Exception {
        String stacks = "[{\"frames\": [\"com.acme.Orders.add(Orders.java:7)\"]}]";
        List<Growth> all = measured(Suspect.all(report(verdict, objects, retained, stacks)));
        return all.stream().filter(growth -> growth.fails(options)).map(Growth::suspect).collect(Collectors.toList());
    }

    private static String excuse(String verdict, String objects) throws Exception {
        return Suspect.all(report(verdict, objects, objects, "[]")).get(0).excuse().orElse("none");
    }

    /** Returns the growth of suspects whose content grew in each of five rounds. */
    private static List<Growth> measured(List<Suspect> suspects) {
        return suspects.stream().map(suspect -> new Growth(suspect, 5, 5)).collect(Collectors.toList());
    }

    private static int growingRounds(String objects, int rounds) throws Exception {
        Suspect suspect = Suspect.all(report("leak", "[0,5,10]", "[0,500,1000]", "[]")).get(0);
        return suspect.growingRounds(report("growth", objects, objects, "[]"), rounds);
    }

    private static Map<?, ?> report(String verdict, String objects, String retained, String stacks) throws Exception {
        String text = "{\"suspects\": [{\"verdict\": \"" + verdict + "\", \"holder\": \"com.acme.Orders.open\", \"objects\": "
                + objects + ", \"retained_bytes\": " + retained + ", \"stacks\": " + stacks + "}]}";
        return (Map<?, ?>) new JsonReader(text).read();
    }
}
