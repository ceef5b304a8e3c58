import type { ChangeType } from '@mediabucket/client/rules'

/** The texts of the page of webhooks. */
export const webhooks = {
  about: 'They tell other programs of every change in this bucket.',
  none: 'There are no webhooks yet.',
  loading: 'Loading…',
  failedToLoad: 'The webhooks could not be loaded.',
  create: 'Create a webhook',
  url: 'URL of the receiver',
  kinds: 'Deliver when a file',
  allKinds: 'Every change',
  kindNames: {
    added: 'is uploaded',
    edited: 'is edited',
    trashed: 'is moved to the trash',
    restored: 'is restored',
    removed: 'is deleted permanently',
    expired: 'expires',
    previewed: 'has its thumbnail',
  } satisfies Readonly<Record<ChangeType, string>> as Readonly<Record<string, string>>,
  batch: 'Changes in one delivery',
  upTo: (count: number) => (count === 1 ? 'One' : `Up to ${count}`),
  states: { off: 'Off', gone: 'Off: the receiver is gone', failed: 'Off: failed for three days' } as Readonly<
    Record<string, string>
  >,
  failing: (count: number) =>
    count === 1 ? 'The last delivery failed.' : `${count} attempts in a row have failed.`,
  nextAttempt: (time: string) => `Next attempt: ${time}.`,
  actions: 'Actions',
  test: 'Send a test',
  delivered: (status: number) => `Delivered. The receiver responded with ${status}.`,
  notDelivered: (reason: string) => `Not delivered. ${reason}`,
  deliveries: 'Deliveries',
  noDeliveries: 'Nothing was delivered yet.',
  time: 'Time',
  type: 'Type',
  status: 'Status',
  duration: 'Duration',
  response: 'Response',
  repeat: 'Repeat',
  switchOn: 'Switch on',
  switchOff: 'Switch off',
  rotate: 'New secret',
  rotateAbout:
    'For a day, deliveries are signed with the old secret too, so that the receiver can be changed in between.',
  delete: 'Delete',
  deleteTitle: 'Delete the webhook?',
  deleteAbout: 'The receiver gets no further changes. This cannot be undone.',
  secret: 'Secret',
  secretTitle: 'The secret of the webhook',
  shownOnce: 'The receiver checks signatures with it. Copy it now. It is not shown again.',
  copy: 'Copy the secret',
}
