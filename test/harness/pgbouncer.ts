import { spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { databasePassword } from './postgres.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

/** Starts pgbouncer in transaction mode before a database: transactions of all clients share two connections. */
export async function startPgbouncer(databaseUrl: string): Promise<{ url: string } & AsyncDisposable> {
  needTools('pgbouncer')
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-pgbouncer-'))
  const [target, port] = [new URL(databaseUrl), await freePort()]
  await writeFile(join(directory, 'users'), '"postgres" ""\n')
  const settings = join(directory, 'pgbouncer.ini')
  await writeFile(
    settings,
    `[databases]
* = host=127.0.0.1 port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(directory, 'users')}
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
`,
  )
  await chmod(directory, 0o755)
  // pgbouncer refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('pgbouncer', ['-q', ...asUser, settings], {
    env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    stdio: 'ignore',
  })
  const exited = new Promise((done) => child.once('exit', done))
  await until('pgbouncer', () => accepts(port))
  return {
    url: `postgres://postgres:${databasePassword}@127.0.0.1:${port}${target.pathname}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      child.kill('SIGTERM')
      await exited
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => done(true)).on('error', () => done(false))
    socket.on('connect', () => socket.destroy())
  })
