package app

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestRequestsAreCountedByTheirLabels(t *testing.T) {
	t.Parallel()
	m := newMetrics(&App{})
	kinds := []requestKind{{"read", "", 200}, {"read", "", 404}, {"read", "denied", 404}, {"mutation", "", 200}, {"", "", 0}}
	const callers, times = 8, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range times {
				for _, k := range kinds {
					m.Request(k.effect, k.problem, k.status, time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	got := map[string]uint64{}
	for _, family := range []string{"keep_requests_total", "keep_request_duration_seconds"} {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != family {
				continue
			}
			for _, series := range f.GetMetric() {
				labels := ""
				for _, l := range series.GetLabel() {
					labels += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
				}
				got[family+labels] = uint64(series.GetCounter().GetValue()) + series.GetHistogram().GetSampleCount()
			}
		}
	}
	want := map[string]uint64{}
	for _, k := range kinds {
		want["keep_requests_total effect="+k.effect+" problem="+k.problem+" status="+strconv.Itoa(k.status)] += callers * times
		want["keep_request_duration_seconds effect="+k.effect] += callers * times
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
