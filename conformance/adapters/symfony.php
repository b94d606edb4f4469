<?php
// Adapter for Symfony's Lock component: CombinedStore of RedisStores with a ConsensusStrategy.
//
// SPDX-License-Identifier: MIT
require_once '/usr/share/php/Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Lock;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

$store = null;
$locks = [];


function open_nodes(array $request)
{
    global $store;
    $stores = [];
    foreach ($request['nodes'] as $address) {
        [$host, $port] = explode(':', $address);
        $redis = new Redis();
        $seconds = $request['timeout'] / 1000;
        $redis->connect($host, (int) $port, $seconds, null, 0, $seconds);
        $stores[] = new RedisStore($redis);
    }
    $store = new CombinedStore($stores, new ConsensusStrategy());
    $version = shell_exec('dpkg-query --show --showformat=\'${Version}\' php-symfony-lock 2>/dev/null');
    return ['ok' => true, 'version' => preg_replace('/[+-].*/', '', $version ?? '')];
}

function validity(Lock $lock)
{
    $seconds = $lock->getRemainingLifetime();
    return $seconds === null ? null : (int) floor($seconds * 1000);
}

function answer(array $request)
{
    global $store, $locks;
    switch ($request['op']) {
        case 'open':
            return open_nodes($request);
        case 'acquire':
            $lock = new Lock(new Key($request['resource']), $store, $request['ttl'] / 1000, false);
            if (!$lock->acquire()) {
                return ['ok' => false, 'error' => 'not acquired'];
            }
            $locks[] = $lock;
            return ['ok' => true, 'lock' => (string) (count($locks) - 1), 'validity' => validity($lock)];
        case 'extend':
            $locks[(int) $request['lock']]->refresh($request['ttl'] / 1000);
            return ['ok' => true, 'validity' => validity($locks[(int) $request['lock']])];
        case 'release':
            $locks[(int) $request['lock']]->release();
            return ['ok' => true];
        case 'validity':
            return ['ok' => true, 'validity' => validity($locks[(int) $request['lock']])];
    }
}

while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    try {
        $answer = answer($request);
    } catch (Throwable $failure) {
        $answer = ['ok' => false, 'error' => $failure->getMessage()];
    }
    echo json_encode(['id' => $request['id']] + $answer), "\n";
}
