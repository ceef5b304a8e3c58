import { outcome } from '../harness/upkeep.ts'
import { faultOnStage, must } from './stage.ts'

export const secondServer = faultOnStage(
  'a second server on the same data',
  async ({ clients, directory, instance }) => {
    let refused = false
    const second = outcome(['serve'], directory).then(({ code, stderr }) => {
      refused = true
      must(
        'the second server refuses to start and prints the reason',
        code === 1 && /already served/.test(stderr),
      )
    })
    // The first server keeps working, and so do commands.
    while (!refused) for (const way of [clients.raw, clients.form, clients.resumable]) await way(instance())
    await second
    for (const command of [
      ['token', 'list'],
      ['bucket', 'list'],
      ['fsck', '--grace', '1ms'],
    ])
      must(
        `${command.join(' ')} works while the first server is running`,
        (await outcome(command, directory)).code === 0,
      )
  },
)
