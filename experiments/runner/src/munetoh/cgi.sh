#!/bin/sh
# A page out of PostgreSQL by CGI (RFC 3875): for each request a process, and a connection to the database (at PGHOST, by the program PSQL).
page=$("$PSQL" -U postgres -d postgres -AtX -c "select body from page where id = $(($$ % 10000))") || {
    printf 'Status: 503 no database\r\nContent-Length: 0\r\n\r\n'
    exit 1
}
printf 'Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s' ${#page} "$page"
