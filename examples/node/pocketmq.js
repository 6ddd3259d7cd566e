'use strict';
const { spawn } = require('node:child_process');
const { createInterface } = require('node:readline');

// Starts a server; returns its addresses, and what a test needs of its HTTP port.
async function startServer() {
  const words = [ 'serve', '--ephemeral', '--log-level', 'error', '--port', '0', '--namesrv-port', '0', '--admin-port', '0' ];
  const server = spawn('pocketmq', words, { stdio: [ 'ignore', 'pipe', 'inherit' ] });
  const ended = new Promise((resolve, reject) => {
    server.on('error', reject);
    server.on('exit', resolve);
  });
  const addresses = {}; // NAMESRV_ADDR, then POCKETMQ_ADMIN, once clients can connect
  const ready = (async () => {
    for await (const line of createInterface({ input: server.stdout })) {
      const [ name, value ] = line.split('=');
      addresses[name] = value;
      if (name === 'POCKETMQ_ADMIN') return true;
    }
    return false;
  })();
  await Promise.race([ ready, ended ]);
  if (!addresses.POCKETMQ_ADMIN) throw new Error('pocketmq did not start');

  // One request to the HTTP port; a refusal is an error.
  async function ask(method, path, body) {
    const answer = await fetch(addresses.POCKETMQ_ADMIN + path, { method, body: body && JSON.stringify(body) });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    return value;
  }

  return {
    nameSrv: addresses.NAMESRV_ADDR,
    ask,
    reset: () => ask('POST', '/api/reset'), // forgets topics, messages, offsets, faults and the request log
    stop: () => { server.kill('SIGTERM'); return ended; },
  };
}

module.exports = { startServer };
