package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is everything that one run of this program measured.
type Report struct {
	Machine  Machine   `json:"machine"`
	Build    Build     `json:"build"`
	Started  time.Time `json:"started"`
	Settings Settings  `json:"settings"`
	Results  []Result  `json:"results"`
}

// A Result is what one scenario measured.
type Result struct {
	Scenario string   `json:"scenario"`
	Figures  []Figure `json:"figures"`
	Notes    []string `json:"notes,omitempty"`
	// The load averages before and after tell whether the machine did something else, too.
	LoadBefore string `json:"loadBefore"`
	LoadAfter  string `json:"loadAfter"`
}

func loadReport(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the earlier result: %w", err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read the earlier result in %s: %w", path, err)
	}
	return &r, nil
}

func saveReport(path string, r Report) error {
	var b strings.Builder
	if err := writeJSON(&b, r); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, r Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

func writeTable(w io.Writer, r Report) error {
	m := r.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "machine  %d cores%s, %.0f MiB, Linux %s, %s\n", m.Cores, inBrackets(m.CPU), m.MiB, m.Kernel, m.Arch)
	fmt.Fprintf(&b, "build    commit %s%s, %s\n", or(r.Build.Commit, "unknown"), inBrackets(r.Build.Tree), r.Build.Go)
	fmt.Fprintf(&b, "run      %s, %d times, idle %s after %s\n", r.Started.Format(time.DateTime), r.Settings.Runs, r.Settings.Idle, r.Settings.Settle)
	for _, result := range r.Results {
		fmt.Fprintf(&b, "\n%s (load average before %s, after %s)\n\n", result.Scenario, or(result.LoadBefore, "unknown"), or(result.LoadAfter, "unknown"))
		table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "FIGURE\tUNIT\tMIN\tMEDIAN\tMAX\tTARGET\t")
		for _, f := range result.Figures {
			least, most := number(f.Min, f.Unit), number(f.Max, f.Unit)
			if len(f.Values) == 1 {
				least, most = "", ""
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Unit, least, number(f.Median, f.Unit), most, targetText(f), verdict(f))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, note := range result.Notes {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeComparison prints how much the medians of now differ from those of before. Less is better in every unit.
func writeComparison(w io.Writer, before, now Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\ncompared with commit %s of %s\n", or(before.Build.Commit, "unknown"), before.Started.Format(time.DateTime))
	if before.Machine != now.Machine {
		fmt.Fprintln(&b, "note: that was another machine; only ratios and sizes can be compared")
	}
	fmt.Fprintln(&b)
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tFIGURE\tUNIT\tBEFORE\tNOW\tDIFFERENCE")
	for _, d := range differences(before, now) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", d.scenario, d.name, d.unit, d.beforeText(), d.nowText(), d.percent())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A difference is one figure of two reports; nil where a report does not have it.
type difference struct {
	scenario, name string
	unit           Unit
	before, now    *float64
}

// differences pairs the figures of scenarios that are in now, in their order; then come those that are gone.
func differences(before, now Report) []difference {
	var all []difference
	for _, result := range now.Results {
		old := figuresOf(before, result.Scenario)
		for _, f := range result.Figures {
			d := difference{scenario: result.Scenario, name: f.Name, unit: f.Unit, now: &f.Median}
			if o, ok := old[f.Name]; ok && o.Unit == f.Unit {
				d.before = &o.Median
			}
			all = append(all, d)
		}
		have := figuresOf(now, result.Scenario)
		for _, r := range before.Results {
			for _, f := range r.Figures {
				if _, ok := have[f.Name]; r.Scenario == result.Scenario && !ok {
					all = append(all, difference{scenario: r.Scenario, name: f.Name, unit: f.Unit, before: &f.Median})
				}
			}
		}
	}
	return all
}

func figuresOf(r Report, scenario string) map[string]Figure {
	figures := map[string]Figure{}
	for _, result := range r.Results {
		if result.Scenario == scenario {
			for _, f := range result.Figures {
				figures[f.Name] = f
			}
		}
	}
	return figures
}

func (d difference) beforeText() string { return d.text(d.before) }
func (d difference) nowText() string    { return d.text(d.now) }

func (d difference) text(value *float64) string {
	if value == nil {
		return "-"
	}
	return number(*value, d.unit)
}

func (d difference) percent() string {
	switch {
	case d.before == nil:
		return "new"
	case d.now == nil:
		return "gone"
	case *d.before == 0:
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*(*d.now-*d.before) / *d.before)
}

func targetText(f Figure) string {
	if f.Target == nil {
		return ""
	}
	s := "≤ " + short(f.Target.Limit)
	if f.Target.Goal != 0 {
		s += " (goal " + short(f.Target.Goal) + ")"
	}
	return s
}

func verdict(f Figure) string {
	switch {
	case f.Met == nil:
		return ""
	case !*f.Met:
		return "MISSED"
	case f.Target.Goal != 0 && f.Median <= f.Target.Goal:
		return "met, the goal too"
	}
	return "met"
}

// number prints as many digits as a unit is worth.
func number(v float64, u Unit) string {
	switch u {
	case MiB, Millis:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case Cores:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
