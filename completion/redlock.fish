# fish completion for redlock(1). build-aux/manual.lua writes this file.

function __redlock_complete_command
    set -l tokens (commandline -cop)
    set -l at (contains -i -- -- $tokens)
    or set at (contains -i run $tokens; or contains -i lead $tokens; or echo 1)
    test "$tokens[$at]" = -- ; or set at (math $at + 1)
    string match -q -- '-*' "$tokens[$at]"; and test "$tokens[$at]" != --; and return
    test (count $tokens) -ge $at; or return
    set -l words
    test (count $tokens) -gt $at; and set words $tokens[(math $at + 1)..-1]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c redlock -f
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a run -d 'takes the lock, runs the command, extends the lock meanwhile, releases it'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a lead -d 'stands by until it leads, runs the command while it leads, and stops it afterwards'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a acquire -d 'takes a lock, and prints a text of it for extend and release'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a extend -d 'extends the lock of a text, and prints its new text; - reads the text from the input'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a release -d 'releases the lock of a text; - reads the text from the input'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a hold -d 'prints a line when it has the lock, and holds it until its input ends or a signal arrives'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a inspect -d 'shows the holder of a lock, and its key on each node'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a force-release -d 'deletes the lock of a holder that is known to be dead; inspect shows its token'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a watch -d 'prints a line for each change of a lock, until a signal arrives'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a nodes -d 'takes locks of its own names, and shows the answer of each node'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a doctor -d 'examines the nodes without changing them, and reports problems'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a bootstrap -d 'with --guard: lets new nodes vote; only safe while no lock is held'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a bench -d 'measures how fast the nodes grant and release a lock of its own name'
complete -c redlock -n 'not __fish_seen_subcommand_from run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -a help -d 'shows the help of the verb, or of all'
complete -c redlock -n '__fish_seen_subcommand_from help' -a 'run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help'
complete -c redlock -n '__fish_seen_subcommand_from run lead' -a '(__redlock_complete_command)'
complete -c redlock -l node -s n -x -d 'a node, or several with commas or spaces between them [REDLOCK_NODES]'
complete -c redlock -l nodes-file -r -F -d 'file of addresses, one a line; # begins a comment'
complete -c redlock -l ttl -s t -x -d 'time after which the lock ends if this program dies [10s]'
complete -c redlock -l node-timeout -x -d 'time limit of one attempt [100ms, at most a tenth of the ttl]'
complete -c redlock -l quorum -x -d 'nodes that must grant the lock, if more than a majority'
complete -c redlock -l guard -d 'ignore nodes that may have lost locks (implied by the next two)'
complete -c redlock -l guard-max-ttl -x -d 'longest ttl of any client of the nodes [30s]'
complete -c redlock -l guard-cluster -x -d 'name of the list of nodes [a hash of the list]'
complete -c redlock -l prefix -s p -x -d 'text before the name of the resource'
complete -c redlock -n '__fish_seen_subcommand_from run lead acquire hold' -l wait -s w -x -d 'time to wait, or inf; 0 = try once [0.6s if taken, 1s if nodes hang; lead: inf]'
complete -c redlock -n '__fish_seen_subcommand_from run lead acquire hold' -l conflict-exit-code -s E -x -d 'exit status if the lock is taken [1]'
complete -c redlock -n '__fish_seen_subcommand_from run lead hold' -l max-hold -x -d 'time after which the lock is not extended any longer [unlimited]'
complete -c redlock -n '__fish_seen_subcommand_from run lead acquire extend hold' -l label -x -d 'text that other clients see [HOST pid N COMMAND]'
complete -c redlock -n '__fish_seen_subcommand_from run lead acquire extend hold' -l no-label -d 'no such text'
complete -c redlock -n '__fish_seen_subcommand_from run acquire hold' -l fence -d 'give each grant a greater number: REDLOCK_FENCE'
complete -c redlock -n '__fish_seen_subcommand_from run acquire hold inspect' -l permits -x -d 'up to so many holders at once, the same number for all: REDLOCK_SLOT'
complete -c redlock -n '__fish_seen_subcommand_from run acquire hold' -l hold-for -x -d 'keep the lock for TIME after the grant, even if released before'
complete -c redlock -n '__fish_seen_subcommand_from run' -l on-lost -x -a 'term warn' -d 'if the lock ends: stop the command (term), or only report it (warn) [term]'
complete -c redlock -n '__fish_seen_subcommand_from run lead' -l strict -d 'kill the command before the lock ends'
complete -c redlock -n '__fish_seen_subcommand_from run lead' -l kill-after -x -d 'time from SIGTERM to SIGKILL; with --strict at most ttl/4 [5s]'
complete -c redlock -n '__fish_seen_subcommand_from doctor' -l keys -d 'also search for locks that never expire'
complete -c redlock -l quiet -s q -d 'write no messages except about mistakes of usage'
complete -c redlock -l verbose -s v -d 'write more, such as the holder of the lock'
complete -c redlock -n '__fish_seen_subcommand_from acquire extend release hold inspect force-release watch nodes doctor bootstrap bench' -l json -d 'print JSON'
complete -c redlock -n '__fish_seen_subcommand_from hold' -l ctdb -d 'print a digit, as CTDB\'s cluster mutex helpers do'
complete -c redlock -n '__fish_seen_subcommand_from watch' -l interval -x -d 'time between two inspections [1s]'
complete -c redlock -n '__fish_seen_subcommand_from bench' -l duration -x -d 'length of the measurement [5s]'
complete -c redlock -l tls -d 'use TLS for all nodes except Unix sockets'
complete -c redlock -l tls-ca -r -F -d 'trusted CA certificates [the system\'s]'
complete -c redlock -l tls-ca-path -x -a '(__fish_complete_directories)' -d 'the same, by openssl-rehash'
complete -c redlock -l tls-crl -r -F -d 'revoked certificates'
complete -c redlock -l tls-cert -r -F -d 'own certificate'
complete -c redlock -l tls-key -r -F -d 'its key'
complete -c redlock -l tls-key-password-file -r -F -d 'file whose first line is the password of the key'
complete -c redlock -l tls-server-name -x -d 'name in the nodes\' certificates [the host of the node]'
complete -c redlock -l tls-min-version -x -a '1.2 1.3' -d '1.2 or 1.3 [1.2]'
complete -c redlock -l tls-ciphers -x -d 'OpenSSL names, separated by \':\''
complete -c redlock -l tls-dangerously-unverified -d 'accept any certificate'
complete -c redlock -l help -s h -d 'show the help; of the verb, if there is one'
complete -c redlock -l version -s V -d 'show the version'
