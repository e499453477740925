# Starts and ends the parts of one control plane for its owner, whose end is the end of this script's standard input.
#
# $1: the cluster's directory; $2: "remove" or "keep", what becomes of the directory at the end.
# "$1/run/end", if there is one, is run after the last part.
# Orders, one a line: "start NAME" (runs $1/run/NAME), "kill NAME", "signal NAME SIGNAL". Each is answered by one line.
#
# The script leads its own process group, and all parts stay in it.
# Signals that end a terminal's jobs are left to the owner, or they would kill the parts before it is done with them.
# And an answer that the owner does not live to read must not end this script.
trap '' HUP INT QUIT TERM PIPE
directory=$1
parts=

# Parts die with this script even if it is killed itself, where the system has a tool for that.
CONTROLPLANE_GUARD=
if setpriv --pdeathsig KILL true 2>/dev/null; then
    CONTROLPLANE_GUARD='setpriv --pdeathsig KILL'
fi
export CONTROLPLANE_GUARD

# Whether $1 is a child of this script; the number of a part that ended long ago may be another process' by now.
is_mine() {
    { read -r _ _ _ parent _ <"/proc/$1/stat"; } 2>/dev/null && [ "$parent" = $$ ]
}

pid_of() {
    pid=
    { read -r pid <"$directory/run/$1.pid"; } 2>/dev/null && is_mine "$pid"
}

while read -r order name argument; do
    case $order in
    start)
        (
            trap - HUP INT QUIT TERM PIPE
            exec /bin/sh "$directory/run/$name" </dev/null
        ) >/dev/null 2>&1 &
        parts="$parts $!"
        echo $! >"$directory/run/$name.pid"
        echo "started $!"
        ;;
    kill)
        if pid_of "$name"; then
            kill -KILL "$pid"
            wait "$pid"
        fi 2>/dev/null
        rm -f "$directory/run/$name.pid"
        echo "killed"
        ;;
    signal)
        if pid_of "$name" && kill -"$argument" "$pid"; then
            echo "sent"
        else
            echo "absent"
        fi 2>/dev/null
        ;;
    esac
done

for pid in $parts; do
    is_mine "$pid" && kill -KILL "$pid"
done 2>/dev/null
wait
# What is not gone with its process.
if [ -f "$directory/run/end" ]; then
    /bin/sh "$directory/run/end" </dev/null >&2
fi
if [ "$2" = remove ]; then
    rm -rf "$directory"
fi
# Whatever is left of the group, this script last.
kill -KILL 0
