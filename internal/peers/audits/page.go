package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// signs stand for the verdicts in tables.
var signs = map[string]string{pass: "✓", fail: "✗", inconclusive: "?", notApplicable: "–"}

// intro is what stands above the tables. Its blanks are the dates and the machine.
const intro = `# Audits of HTTP clients

What HTTP clients do when a service fails, as ` + "`riprap audit`" + ` saw it %s (%s).
` + "`make audits`" + ` wrote this page: it runs every client below against a server that fails on purpose, and judges what arrives there.

* Each client is audited **as it is** by default, and **as its documentation configures retries**: with the figures of the place
  where the documentation shows how to retry, and the timeout that the same page or guide advises. Where it advises none there is none.
* A ✗ says that a rule of this audit was not kept, in that configuration and version. It is no judgement of the client: some
  leave a matter to their callers on purpose, and most have an option for it.
* Some rules ask several things at once, and one of them is enough for a ✗: credentials and a key on a redirect, a wait of a
  day and a number that overflows. The findings, one click away, say which it was.
* The rules are ours, and riphttp was built with them in mind. Each says where it comes from. Where one of them, a
  configuration or a finding does somebody an injustice, please open an issue.
* Times depend on the machine. The audit judges ratios and bounds that hold on a busy one, and says "inconclusive" if they do not.
`

// writePage writes docs/audits.md. The results are in the order of peers and of their configurations.
func writePage(w io.Writer, results []result, machine string) {
	fmt.Fprintf(w, intro, days(results), machine)
	fmt.Fprint(w, "\n## The clients\n\n| client | versions | configuration | what is set | where that is documented |\n|---|---|---|---|---|\n")
	for i, r := range results {
		p, c := lookUp(r)
		client, versions := fmt.Sprintf("[%s](#%s)", p.title, anchor(p.title)), cell(plain(r.Versions))
		if i > 0 && results[i-1].Peer == r.Peer && results[i-1].Versions == r.Versions {
			client, versions = "", ""
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", client, versions, r.Configuration, cell(c.set), cell(c.source))
	}

	fmt.Fprint(w, "\n## The results\n\n✓ kept · ✗ not kept · ? inconclusive · – not applicable, for example because the client does not retry\n")
	for _, half := range []struct{ configuration, heading string }{
		{defaults, "By default"}, {docs, "As the documentation configures retries"},
	} {
		of := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Configuration != half.configuration })
		if len(of) > 0 {
			fmt.Fprintf(w, "\n### %s\n\n", half.heading)
			writeTable(w, of)
		}
	}

	fmt.Fprint(w, "\n## Client by client\n")
	writeClients(w, results)
	fmt.Fprint(w, "\n## Rule by rule\n\nOnly rules that somebody did not keep, with what was seen of those.\n")
	writeFindings(w, results)
	fmt.Fprint(w, "\n## How they were run\n\n")
	writeCommands(w, results)
}

// writeTable writes a table with a row for each rule and a column for each result.
func writeTable(w io.Writer, results []result) {
	fmt.Fprint(w, "| rule |")
	for _, r := range results {
		p, _ := lookUp(r)
		fmt.Fprintf(w, " %s |", p.title)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat(":---:|", len(results)))
	for _, rule := range rulesOf(results) {
		fmt.Fprintf(w, "| %s |", cell(plain(rule.Title)))
		for _, r := range results {
			sign := " "
			if f, ok := r.finding(rule.ID); ok {
				sign = signs[f.Verdict]
				if f.Verdict == fail {
					sign = "[" + sign + "](#" + rule.ID + ")"
				}
			}
			fmt.Fprintf(w, " %s |", sign)
		}
		fmt.Fprintln(w)
	}
}

// writeClients says of each client what it does well, and how much of what applies to it.
func writeClients(w io.Writer, results []result) {
	for i, r := range results {
		p, _ := lookUp(r)
		if i == 0 || results[i-1].Peer != r.Peer {
			fmt.Fprintf(w, "\n### %s\n\n%s\n\n", p.title, p.about)
		}
		var kept, unsure []string
		applies := 0
		for _, f := range r.report.Rules {
			switch f.Verdict {
			case pass:
				kept = append(kept, plain(f.Title))
			case inconclusive:
				unsure = append(unsure, plain(f.Title)+" ("+plain(f.Seen)+")")
			}
			if f.Verdict != notApplicable {
				applies++
			}
		}
		fmt.Fprintf(w, "* **%s**: keeps %d of the %d rules that apply", r.Configuration, len(kept), applies)
		if len(kept) > 0 {
			fmt.Fprintf(w, ": %s", strings.Join(kept, " · "))
		}
		fmt.Fprint(w, ".")
		if len(unsure) > 0 {
			fmt.Fprintf(w, " Inconclusive: %s.", strings.Join(unsure, " · "))
		}
		fmt.Fprintln(w)
	}
}

// shown is how many lines of evidence the page has of a finding.
const shown = 3

// writeFindings writes, of each rule that was not kept, its reason once and below it what was seen of each client.
func writeFindings(w io.Writer, results []result) {
	for _, rule := range rulesOf(results) {
		broken := false
		for _, r := range results {
			f, ok := r.finding(rule.ID)
			if !ok || f.Verdict != fail {
				continue
			}
			if !broken {
				broken = true
				fmt.Fprintf(w, "\n### %s\n\nThe rule: %s. Why: %s. What to change: %s. Source: %s.\n\n", rule.ID,
					plain(rule.Title), plain(rule.Why), plain(rule.Fix), stop(plain(rule.Source)))
			}
			p, _ := lookUp(r)
			fmt.Fprintf(w, "* **%s**, %s: %s\n", p.title, r.Configuration, plain(f.Seen))
			for _, line := range f.Evidence[:min(len(f.Evidence), shown)] {
				fmt.Fprintf(w, "  * `%s`\n", strings.ReplaceAll(line, "`", "'"))
			}
			if more := len(f.Evidence) - shown; more > 0 {
				fmt.Fprintf(w, "  * and %d more like these\n", more)
			}
		}
	}
}

// writeCommands lists what riprap audit was told to run.
func writeCommands(w io.Writer, results []result) {
	fmt.Fprint(w, "The programs are in `internal/peers/clients`. `make audits CLIENTS=got` repeats the audits of one client.\n\n```text\n")
	for _, r := range results {
		options := ""
		if r.Flags != "" {
			options = " " + r.Flags
		}
		if r.Post != "" {
			options += fmt.Sprintf(" \\\n    --post %q \\\n    --keyed %q \\\n   ", r.Post, r.Keyed)
		}
		fmt.Fprintf(w, "riprap audit%s -- %s\n", options, r.Command)
	}
	fmt.Fprint(w, "```\n")
}

// rulesOf returns the rules of the results, in the order of the first that has most of them.
func rulesOf(results []result) []finding {
	longest := slices.MaxFunc(results, func(a, b result) int { return len(a.report.Rules) - len(b.report.Rules) })
	return longest.report.Rules
}

func (r result) finding(rule string) (finding, bool) {
	for _, f := range r.report.Rules {
		if f.ID == rule {
			return f, true
		}
	}
	return finding{}, false
}

// lookUp returns what the table of peers says of a result's peer and configuration.
func lookUp(r result) (p peer, c configuration) {
	if i := slices.IndexFunc(peers, func(p peer) bool { return p.name == r.Peer }); i >= 0 {
		p = peers[i]
	}
	if i := slices.IndexFunc(p.configurations, func(c configuration) bool { return c.name == r.Configuration }); i >= 0 {
		c = p.configurations[i]
	}
	return p, c
}

// days returns when the audits were made: "on 2026-11-30", or "from … to …".
func days(results []result) string {
	var all []string
	for _, r := range results {
		all = append(all, r.report.Started.UTC().Format(time.DateOnly))
	}
	first, last := slices.Min(all), slices.Max(all)
	if first == last {
		return "on " + first
	}
	return "from " + first + " to " + last
}

// markdown escapes what would be more than text in Markdown.
var markdown = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "[", `\[`, "#", `\#`, "\n", " ")

// plain returns text so that it reads in Markdown as it is.
func plain(text string) string { return markdown.Replace(strings.TrimSpace(text)) }

// cell returns Markdown so that it stays in its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// stop removes the full stop that the sentence around text has already.
func stop(text string) string { return strings.TrimSuffix(text, ".") }

// anchor returns where a heading's link leads, as GitHub makes it.
func anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r):
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}
