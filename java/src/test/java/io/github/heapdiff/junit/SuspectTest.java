package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** The rule, figure by figure, and what is said of a suspect. */
class SuspectTest {
    private static final GrowthOptions OPTIONS = GrowthOptions.defaults().withRounds(5);

    @Test
    void eachStepHasToAddAnObjectWithEachRound() throws Exception {
        assertEquals(1, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(1, growing("growth", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,5,9]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,100,100]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,100,90]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void cachesAndWarmUpPass() throws Exception {
        assertEquals(0, growing("cache", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("warmup", "[0,5,10]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void stepsAreLikeEachOther() throws Exception {
        assertEquals(1, growing("leak", "[0,40,50]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,45,55]", "[0,500,1000]", OPTIONS.withRounds(11)).size());
        assertEquals(0, growing("leak", "[0,50,60]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[0,10,60]", "[0,500,1000]", OPTIONS).size());
    }

    @Test
    void theSameObjectsGrowInBothSteps() throws Exception {
        assertEquals(1, growing("leak", "[1,1,1]", "[0,500,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[1,1,1]", "[0,0,1000]", OPTIONS).size());
        assertEquals(0, growing("leak", "[1,1,1]", "[0,900,1000]", OPTIONS).size());
    }

    @Test
    void toleratedBytesAreTheLastThatPass() throws Exception {
        assertEquals(0, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS.withToleratedBytes(1000)).size());
        assertEquals(1, growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS.withToleratedBytes(999)).size());
    }

    @Test
    void whatIsTooLittleForASuspectGetsASecondStep() throws Exception {
        assertFalse(Suspect.mayAppear(heap(16_000, 3_199)));
        assertTrue(Suspect.mayAppear(heap(16_000, 3_200)));
        assertFalse(Suspect.mayAppear(heap(16_000, -10_000)));
        // Of an earlier heapdiff.
        assertTrue(Suspect.mayAppear(Map.of("delta", Map.of("shallow_bytes", 1L))));
        assertThrows(HeapUndecidedException.class, () -> Suspect.mayAppear(Map.of()));
    }

    @Test
    void aSuspectWithoutFiguresDecidesNothing() {
        assertThrows(HeapUndecidedException.class, () -> growing("leak", "[]", "[0,1]", OPTIONS));
        assertThrows(HeapUndecidedException.class, () -> growing("leak", "[0,null]", "[0,1]", OPTIONS));
    }

    @Test
    void theStackIsSaidWhereThereIsOne() throws Exception {
        List<Suspect> found = growing("leak", "[0,5,10]", "[0,500,1000]", OPTIONS);
        String with = GrowthMessage.of(found, OPTIONS, Optional.of(Path.of("/dumps")));
        assertTrue(with.contains("allocated com.acme.Orders.add(Orders.java:7)"), with);
        assertTrue(with.endsWith("the dumps are in /dumps"), with);
        assertTrue(with.startsWith("the heap grows with each round: com.acme.Orders.open grew by 1,000 bytes in 10 rounds"), with);
        List<Suspect> bare = Suspect.growingWithRounds(report("leak", "[0,5,10]", "[0,500,1000]", "[]"), OPTIONS);
        assertFalse(GrowthMessage.of(bare, OPTIONS, Optional.empty()).contains("allocated"));
    }

    private static Map<?, ?> heap(long noise, long grown) {
        return Map.of("delta", Map.of("shallow_bytes", grown), "noise_bytes", noise);
    }

    private static List<Suspect> growing(String verdict, String objects, String retained, GrowthOptions options)
            throws Exception {
        String stacks = "[{\"frames\": [\"com.acme.Orders.add(Orders.java:7)\"]}]";
        return Suspect.growingWithRounds(report(verdict, objects, retained, stacks), options);
    }

    private static Map<?, ?> report(String verdict, String objects, String retained, String stacks) throws Exception {
        String text = "{\"suspects\": [{\"verdict\": \"" + verdict + "\", \"holder\": \"com.acme.Orders.open\", \"objects\": "
                + objects + ", \"retained_bytes\": " + retained + ", \"stacks\": " + stacks + "}]}";
        return (Map<?, ?>) new JsonReader(text).read();
    }
}
