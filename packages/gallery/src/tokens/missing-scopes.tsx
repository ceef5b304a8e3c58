import type { Token } from '@mediabucket/client'
import { useId, useState } from 'preact/hooks'
import { Modal } from '../components/modal.tsx'
import { SectionHead } from '../components/section.tsx'
import { copyText } from '../copy-text.ts'
import { usePage } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { isOfService } from './token-kinds.ts'

/** The command that creates a token like this one, which also has these scopes. */
function commandFor(token: Token, scopes: readonly string[]): string {
  const all = new Set([...(isOfService(token) ? ['buckets:manage'] : []), ...token.scopes, ...scopes])
  const kind = isOfService(token) ? '--service' : `--bucket ${token.bucket}`
  return `npx mediabucket token create ${kind} --scope ${[...all].join(',')}`
}

/** Says which scopes the token lacks, and the command that creates a token that has them. */
export function MissingScopes({ scopes }: { scopes: readonly string[] }) {
  const { tokenInfo } = usePage()
  const [copied, setCopied] = useState<boolean | null>(null)
  const command = commandFor(tokenInfo, scopes)
  return (
    <div class="missing-scopes">
      <p>{strings.tokens.missing(scopes.join(', '), scopes.length)}</p>
      <p>{strings.tokens.missingCommand}</p>
      <p class="command">
        <code>{command}</code>
        <button type="button" class="button small" onClick={() => void copyText(command).then(setCopied)}>
          {strings.tokens.copyCommand}
        </button>
      </p>
      <p class="message" role="status">
        {copied === null ? '' : copied ? strings.copied : strings.notCopied}
      </p>
    </div>
  )
}

/** What a page shows instead of its content if the token lacks the scope. */
export function MissingScopePage({ title, scope }: { title: string; scope: string }) {
  return (
    <>
      <SectionHead title={title} about="">
        {null}
      </SectionHead>
      <MissingScopes scopes={[scope]} />
    </>
  )
}

interface MissingScopesDialogProps {
  readonly title: string
  readonly scopes: readonly string[]
  readonly onClose: () => void
}

/** What a button shows that needs other scopes. */
export function MissingScopesDialog({ title, scopes, onClose }: MissingScopesDialogProps) {
  const id = useId()
  return (
    <Modal class="dialog" labelledBy={id} onCancel={onClose}>
      <h2 id={id}>{title}</h2>
      <MissingScopes scopes={scopes} />
      <div class="dialog-actions">
        <button type="button" class="button primary" onClick={onClose}>
          {strings.close}
        </button>
      </div>
    </Modal>
  )
}
