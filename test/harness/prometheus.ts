import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { read } from '../architecture/sources.ts'
import { temporaryDirectory } from './directory.ts'
import { freePort } from './free-port.ts'
import { needTools } from './tools.ts'
import { until } from './until.ts'

/** A Prometheus that scrapes one service and evaluates docs/operations/alerts.yml. */
export interface Prometheus extends AsyncDisposable {
  /** The names of the alerts that fire, in order. */
  firing(): Promise<string[]>
}

const Alerts = Type.Object({
  data: Type.Object({
    alerts: Type.Array(
      Type.Object({ labels: Type.Object({ alertname: Type.String() }), state: Type.String() }),
    ),
  }),
})

/** Seconds between two scrapes, which may take as long. */
const interval = 3

/** The rules of docs/operations/alerts.yml, in which a minute is as long as an interval. */
const fastRules = (): string =>
  read('docs/operations/alerts.yml').replaceAll(
    /(?<=^\s+for: |\[)(\d+)m(?=\]|$)/gm,
    (_, minutes: string) => `${Number(minutes) * interval}s`,
  )

/** Starts it; `url` is that of the service. */
export async function startPrometheus(url: string): Promise<Prometheus> {
  needTools('prometheus')
  const directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'alerts.yml'), fastRules())
  await writeFile(
    join(directory.path, 'prometheus.yml'),
    JSON.stringify({
      global: {
        scrape_interval: `${interval}s`,
        scrape_timeout: `${interval}s`,
        evaluation_interval: `${interval}s`,
      },
      rule_files: ['alerts.yml'],
      scrape_configs: [
        {
          job_name: 'mediabucket',
          static_configs: [{ targets: [new URL(url).host] }],
        },
      ],
    }),
  )
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(
    'prometheus',
    [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { cwd: directory.path, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  await until('Prometheus is ready', async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended: ${output}`)
    return await fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return {
    async firing() {
      const { data } = Value.Parse(Alerts, await (await fetch(`http://${address}/api/v1/alerts`)).json())
      const names = data.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels }) => labels.alertname)
      return [...new Set(names)].toSorted()
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
      await directory[Symbol.asyncDispose]()
    },
  }
}
