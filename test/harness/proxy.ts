import { execFileSync, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { read } from '../architecture/sources.ts'
import { freePort } from './free-port.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

/** A reverse proxy that runs a configuration of docs/operations/, its addresses and paths replaced. */
export interface Proxy extends AsyncDisposable {
  /** The base URL to set in the service. */
  readonly url: string
  /** The same with TLS and a self-signed certificate, if the configuration has it. */
  readonly secureUrl: string
  /**
   * Forwards requests to the service at this address, or these, from now on. `bytes` is its data directory, or the host of its store.
   */
  start(service: string | readonly string[], bytes?: string): Promise<void>
  /** Files in which it has buffered bodies. */
  buffered(): Promise<string[]>
}

/** Replaces a text; throws unless it occurs the expected number of times. */
function replaced(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the configuration lacks ${from}`)
    return changed.replaceAll(from, to)
  }, text)
}

const temporary = ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

const nginxCommand = (directory: string) => [
  'nginx',
  ...['-e', 'stderr'],
  ...['-p', directory],
  ...['-c', join(directory, 'config')],
]

const caddyCommand = (directory: string) => [
  ...['caddy', 'run', '--adapter', 'caddyfile'],
  ...['--config', join(directory, 'config')],
]

/** The configurations, and how each is run below `directory`. */
const kinds = {
  nginx: {
    path: '',
    configure: (directory: string, port: number, securePort: number, service: string) =>
      secureNginx(
        'nginx.conf',
        'media.example.org',
        { directory, port, securePort },
        { '127.0.0.1:8080': service },
      ),
    command: nginxCommand,
  },
  'nginx that sends files': {
    path: '',
    configure: (directory: string, port: number, securePort: number, service: string, data: string) =>
      secureNginx(
        'nginx-sendfile.conf',
        'media.example.org',
        { directory, port, securePort },
        { '127.0.0.1:8080': service, '/var/lib/mediabucket': data },
      ),
    command: nginxCommand,
  },
  'nginx that gets objects': {
    path: '',
    configure: (directory: string, port: number, _: number, service: string, store: string) =>
      nginx(
        directory,
        replaced(read('docs/deploy/nginx-s3.conf'), {
          'listen 80;': `listen 127.0.0.1:${port};`,
          'mediabucket:8080': service,
          'https://mediabucket_store': 'http://mediabucket_store',
          's3.example.org:443': store,
          's3.example.org': store,
          '/var/cache/nginx/mediabucket': join(directory, 'cache'),
        }),
      ),
    command: nginxCommand,
  },
  'nginx below a path': {
    path: '/files',
    configure: (directory: string, port: number, _: number, service: string) =>
      nginx(
        directory,
        `server { listen 127.0.0.1:${port};\n${replaced(read('docs/operations/nginx-path.conf'), { '127.0.0.1:8080': service })} }`,
      ),
    command: nginxCommand,
  },
  'nginx for the port of S3': {
    path: '',
    configure: (directory: string, port: number, securePort: number, service: string) =>
      secureNginx(
        'nginx-s3-port.conf',
        's3.example.org',
        { directory, port, securePort },
        { '127.0.0.1:9000': service },
      ),
    command: nginxCommand,
  },
  'nginx before several servers': {
    path: '',
    configure: (directory: string, port: number, _: number, services: string) =>
      nginx(
        directory,
        replaced(read('docs/deploy/nginx.conf'), {
          'listen 80;': `listen 127.0.0.1:${port};`,
          'server mediabucket:8080 max_fails=1 fail_timeout=5s;': services
            .split(' ')
            .map((service) => `server ${service} max_fails=1 fail_timeout=5s;`)
            .join(' '),
        }),
      ),
    command: nginxCommand,
  },
  caddy: {
    path: '',
    configure: (_: string, port: number, _securePort: number, service: string) =>
      caddy(
        replaced(read('docs/operations/Caddyfile'), {
          'media.example.org {': `http://127.0.0.1:${port} {`,
          '127.0.0.1:8080': service,
        }),
      ),
    command: caddyCommand,
  },
  'caddy for the port of S3': {
    path: '',
    configure: (_: string, port: number, _securePort: number, service: string) =>
      caddy(
        replaced(read('docs/operations/s3-port.Caddyfile'), {
          's3.example.org {': `http://127.0.0.1:${port} {`,
          '127.0.0.1:9000': service,
        }),
      ),
    command: caddyCommand,
  },
}

const caddy = (sites: string) => `{\n\tadmin off\n\tauto_https off\n}\n${sites}`

const nginx = (directory: string, http: string) => `daemon off; pid ${directory}/pid; error_log stderr;
${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
access_log off;
${temporary.map((name) => `${name === 'body' ? 'client_body' : name}_temp_path ${directory}/temporary/${name};`).join('\n')}
${http}
}
`

interface SecurePlace {
  readonly directory: string
  readonly port: number
  readonly securePort: number
}

/** A configuration of docs/operations for this domain, which listens with and without TLS. */
const secureNginx = (
  file: string,
  domain: string,
  { directory, port, securePort }: SecurePlace,
  changes: Readonly<Record<string, string>>,
) =>
  nginx(
    directory,
    replaced(read(`docs/operations/${file}`), {
      'listen 443 ssl http2;': `listen 127.0.0.1:${port}; listen 127.0.0.1:${securePort} ssl http2;`,
      [`/etc/ssl/${domain}/fullchain.pem`]: join(directory, 'certificate.pem'),
      [`/etc/ssl/${domain}/privkey.pem`]: join(directory, 'key.pem'),
      ...changes,
    }),
  )

export type ProxyKind = keyof typeof kinds

export async function openProxy(kind: ProxyKind): Promise<Proxy> {
  needTools(kind.startsWith('caddy') ? 'caddy' : 'nginx', 'openssl')
  const { path, configure, command } = kinds[kind]
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-proxy-'))
  for (const name of temporary) await mkdir(join(directory, 'temporary', name), { recursive: true })
  const [port, securePort] = [await freePort(), await freePort()]
  const files = { cert: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') }
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=x',
      '-keyout',
      files.key,
      '-out',
      files.cert,
    ],
    { stdio: 'ignore' },
  )
  let end = async () => undefined as unknown
  return {
    url: `http://127.0.0.1:${port}${path}`,
    secureUrl: `https://127.0.0.1:${securePort}${path}`,
    async start(service, bytes = '') {
      const hosts = [service].flat().map((url) => new URL(url).host)
      await writeFile(
        join(directory, 'config'),
        configure(directory, port, securePort, hosts.join(' '), bytes),
      )
      const [program = '', ...args] = command(directory)
      const env = {
        PATH: `${process.env['PATH']}:/usr/sbin`,
        HOME: directory,
        XDG_DATA_HOME: directory,
        XDG_CONFIG_HOME: directory,
      }
      const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      const exited = new Promise((resolve) => child.once('exit', resolve))
      let output = ''
      child.stderr.on('data', (chunk) => {
        output += chunk
      })
      end = async () => {
        child.kill('SIGTERM')
        await exited
      }
      await until(`${kind} listens`, () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${output}`)
        return new Promise<boolean>((resolve) => {
          const probe = connect(port, '127.0.0.1', () => {
            probe.destroy()
            resolve(true)
          }).once('error', () => resolve(false))
        })
      })
    },
    buffered: async () =>
      (await readdir(join(directory, 'temporary'), { recursive: true })).filter((name) => /\d$/.test(name)),
    async [Symbol.asyncDispose]() {
      await end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
