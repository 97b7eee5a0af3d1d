#!/usr/bin/env bash
# `bywash reproduce --quick`: every part of every experiment runs to its end, no connection fails, every table and plot is written.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF

"$bywash" reproduce niwa2005 --quick --out "$scratch/niwa2005" >"$scratch/said" 2>&1 || { cat "$scratch/said"; die "FAILED   reproduce niwa2005"; }
[ "$(wc -l <"$scratch/niwa2005/table2.csv")" -eq 11 ] || die "FAILED   reproduce niwa2005: table2.csv has not ten ciphers"
[ "$(wc -l <"$scratch/niwa2005/table6.csv")" -eq 78 ] || die "FAILED   reproduce niwa2005: table6.csv has not 77 cells"
[ "$(wc -l <"$scratch/niwa2005/side-by-side.csv")" -eq 7 ] || die "FAILED   reproduce niwa2005: side-by-side.csv has not six policies"
for plot in table6 figure7 figures3-5; do
    grep -q '<polyline' "$scratch/niwa2005/$plot.svg" || die "FAILED   reproduce niwa2005: $plot.svg shows no line"
done
echo "ok       reproduce niwa2005 --quick"

"$bywash" reproduce ohgama2008 --part figures --part switches --part mixed --out "$scratch/ohgama2008" >"$scratch/said" 2>&1 ||
    { cat "$scratch/said"; die "FAILED   reproduce ohgama2008"; }
grep -q "met " "$scratch/said" && ! grep MISSED "$scratch/said" || die "FAILED   reproduce ohgama2008: a bar is missed"
[ "$(wc -l <"$scratch/ohgama2008/switches.csv")" -eq 101 ] || die "FAILED   reproduce ohgama2008: switches.csv has not 2 machines, 5 costs, 10 schedulers"
for plot in figures6-8 switches; do
    grep -q '<polyline' "$scratch/ohgama2008/$plot.svg" || die "FAILED   reproduce ohgama2008: $plot.svg shows no line"
done
echo "ok       reproduce ohgama2008, the simulated parts: every bar met"

# Live every byte is compared by the processes themselves; how long it took is nobody's to promise on a machine that others use.
"$bywash" reproduce ohgama2008 --quick --part live --out "$scratch/ohgama2008" >"$scratch/said" 2>&1 || { cat "$scratch/said"; die "FAILED   reproduce ohgama2008 --part live"; }
[ "$(wc -l <"$scratch/ohgama2008/live.csv")" -eq 43 ] || die "FAILED   reproduce ohgama2008: live.csv has not 42 figures"
echo "ok       reproduce ohgama2008 --quick --part live"

"$bywash" reproduce ohgama2008 --quick --part device --out "$scratch/ohgama2008" >"$scratch/said" 2>"$scratch/notes" ||
    { cat "$scratch/said" "$scratch/notes"; die "FAILED   reproduce ohgama2008 --part device"; }
grep skipped "$scratch/notes" || true
awk -F, '$4 == "direct" { n++ } END { exit n != 7 }' "$scratch/ohgama2008/device.csv" || die "FAILED   reproduce ohgama2008: device.csv has not 7 loads by the direct way"
grep -q devcrypto "$scratch/ohgama2008/device.csv" || die "FAILED   reproduce ohgama2008: device.csv has nothing of /dev/crypto"
echo "ok       reproduce ohgama2008 --quick --part device"

live=$scratch/niwa2005-live
"$bywash" reproduce niwa2005-live --quick --out "$live" >"$scratch/said" 2>&1 || { cat "$scratch/said"; die "FAILED   reproduce niwa2005-live"; }
[ "$(wc -l <"$live/sim-against-live.csv")" -eq 29 ] || die "FAILED   reproduce niwa2005-live: sim-against-live.csv has not 4 loads of 7 figures"
for load in bursts drift predict processor; do
    recording=$live/recording-$load.csv
    said=$(sed -n "s/^$load: .*(\([0-9]*\) requests.*/\1/p" "$scratch/said")
    # Every request is there once, begun after it came and done after it began, on one of the two engines.
    awk -F, -v said="$said" 'NR > 1 { n += $8 >= $1 && $9 >= $8 && ($7 == "niwa2005" || $7 == "pentium4" || $7 == "cpu") } END { exit !(said > 0 && n == said && NR == n + 1) }' \
        "$recording" || die "FAILED   reproduce niwa2005-live: $recording has not $said requests, each served once"
    "$bywash" simulate --trace "$recording" --engine niwa2005 >"$scratch/simulated" 2>&1 || { cat "$scratch/simulated"; die "FAILED   simulate --trace $recording"; }
    taken=$(sed -n 's/.*: \([0-9]*\) requests over .* after \([0-9]*\) to learn from.*/\1 + \2/p' "$scratch/simulated")
    [ "$((taken))" -eq "$said" ] || { cat "$scratch/simulated"; die "FAILED   simulate --trace $recording: not $said requests"; }
    grep -q 'modelled' "$scratch/simulated" || die "FAILED   simulate --trace $recording: does not say that its engine is modelled"
done
echo "ok       reproduce niwa2005-live --quick, and its recordings in simulate"
if command -v openssl >/dev/null; then
    "$bywash" reproduce takeda --quick --out "$scratch/takeda" >"$scratch/said" 2>&1 || { cat "$scratch/said"; die "FAILED   reproduce takeda"; }
    grep -q '<polyline' "$scratch/takeda/figure2-cpu.svg" || die "FAILED   reproduce takeda: figure2-cpu.svg shows no line"
    for gpu in intel-iris-655 raspberry-pi-4 nvidia-h200 nvidia-h100; do
        [ "$(grep -c "^$gpu,simulated," "$scratch/takeda/figure2-simulated.csv")" -eq 2 ] || die "FAILED   reproduce takeda: figure2-simulated.csv has not two sizes of $gpu"
        [ "$(grep -c "^$gpu,simulated," "$scratch/takeda/table1-simulated.csv")" -eq 3 ] || die "FAILED   reproduce takeda: table1-simulated.csv has not three rows of $gpu"
    done
    grep -q '^"processor, one thread",live' "$scratch/takeda/table1-live.csv" || die "FAILED   reproduce takeda: table1-live.csv has no processor"
    ! grep -v simulated "$scratch/takeda/table1-simulated.csv" | grep -v '^gpu,marked' || die "FAILED   reproduce takeda: a simulated row does not say so"
    echo "ok       reproduce takeda --quick"
else
    echo "skipped  reproduce takeda: no openssl here: apt-get install openssl"
fi
# What is absent of DDS the command says itself: its tables then have no row of that.
if command -v openssl >/dev/null; then
    kido=$scratch/kido
    # In the checkout, for the source of Fast DDS's own test is fetched and kept there.
    (cd "$repository" && "$bywash" reproduce kido --quick --out "$kido") >"$scratch/said" 2>"$scratch/notes" || { cat "$scratch/said" "$scratch/notes"; die "FAILED   reproduce kido"; }
    [ "$(wc -l <"$kido/break-even.csv")" -ge 2 ] || die "FAILED   reproduce kido: break-even.csv is empty"
    for plot in estimate break-even; do
        grep -q '<polyline' "$kido/$plot.svg" || die "FAILED   reproduce kido: $plot.svg shows no line"
    done
    # ROWS of an implementation in latency.csv; skipped with the command's reason where it is absent.
    rows_of() {
        local absent="ABSENT on this machine: \(.* of \)\?$1:"
        if grep -q "$absent" "$scratch/said"; then
            echo "skipped  reproduce kido: $(grep -m 1 "$absent" "$scratch/said")"
        else
            [ "$(grep -c "^$1,.*,live," "$kido/latency.csv")" -eq "$2" ] || die "FAILED   reproduce kido: latency.csv has not $2 rows of $1"
        fi
    }
    # Four sizes: without security, with it, through the door, and with cryptography that is nothing.
    rows_of "Fast DDS" 16
    rows_of "Fast DDS (LatencyTest)" 16
    rows_of "Cyclone DDS" 16
    if grep -q '^Fast DDS' "$kido/latency.csv" && [ -e "$kido/shares.csv" ]; then
        grep -q 'calls of AES-GCM came to the library' "$scratch/said" || die "FAILED   reproduce kido: bywash run --dds was not tried"
        [ "$(grep -c ',live,' "$kido/shares.csv")" -eq 8 ] || die "FAILED   reproduce kido: shares.csv has not two ways at four sizes"
        awk -F, 'NR > 1 && $5 > 0 { n++ } END { exit n != 8 }' "$kido/shares.csv" || die "FAILED   reproduce kido: shares.csv has a row without a derivation"
        grep -q '<polyline' "$kido/shares.svg" || die "FAILED   reproduce kido: shares.svg shows no line"
    fi
    [ "$(wc -l <"$kido/latency.csv")" -lt 2 ] || grep -q '<polyline' "$kido/latency.svg" || die "FAILED   reproduce kido: latency.svg shows no line"
    echo "ok       reproduce kido --quick"
else
    echo "skipped  reproduce kido: no openssl here: apt-get install openssl"
fi
command -v nginx >/dev/null || { echo "skipped  reproduce: no nginx here: apt-get install nginx-light"; exit 0; }

"$bywash" reproduce munetoh --quick --out "$scratch/out" >"$scratch/said" 2>"$scratch/notes" || { cat "$scratch/notes"; die "FAILED   reproduce munetoh"; }
! grep 'connections failed' "$scratch/notes" || die "FAILED   reproduce munetoh: connections failed"
tables=(table1 waiting servers curves client-certificates pages)
plots=(figure3-nginx-rsa-2048 figure4-nginx-rsa-2048 pages)
grep -q 'no haproxy' "$scratch/notes" || { tables+=(haproxy-async); plots+=(haproxy-async); }
grep -q 'no apache2\|a database behind' "$scratch/notes" || tables+=(cgi)
for table in "${tables[@]}"; do
    [ "$(wc -l <"$scratch/out/$table.csv")" -ge 2 ] || die "FAILED   reproduce munetoh: $table.csv is empty"
done
for plot in "${plots[@]}"; do
    grep -q '<polyline' "$scratch/out/$plot.svg" || die "FAILED   reproduce munetoh: $plot.svg shows no line"
done
grep skipped "$scratch/notes" || true
echo "ok       reproduce munetoh --quick ($SECONDS s)"

# Ctrl-C while servers run: they end with it, and the part that was done is kept.
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp "$bywash" reproduce munetoh --quick --part table1 --part matrix --out "$scratch/interrupted" >"$scratch/said" 2>"$scratch/notes" &
interrupted=$!
for _ in $(seq 300); do pgrep -f "$scratch/tmp/.*nginx.conf" >"$scratch/servers" && break; sleep 0.1; done
[ -s "$scratch/servers" ] || { cat "$scratch/notes"; die "FAILED   reproduce interrupted: no nginx was started"; }
kill -INT "$interrupted"
wait "$interrupted" && rc=0 || rc=$?
[ "$rc" -eq 130 ] || { cat "$scratch/notes"; die "FAILED   reproduce interrupted: it exits with $rc"; }
! pgrep -af "$scratch/tmp/" || die "FAILED   reproduce interrupted: these stay behind"
[ "$(wc -l <"$scratch/interrupted/table1.csv")" -ge 2 ] || die "FAILED   reproduce interrupted: table1.csv is not kept"
grep -q 'run the others with --part: matrix' "$scratch/notes" || { cat "$scratch/notes"; die "FAILED   reproduce interrupted: it does not say what is missing"; }
echo "ok       reproduce interrupted: servers end, parts that were done stay"
