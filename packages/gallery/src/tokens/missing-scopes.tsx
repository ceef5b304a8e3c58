import { useId, useState } from 'preact/hooks'
import { Modal } from '../components/modal.tsx'
import { SectionHead } from '../components/section.tsx'
import { copyText } from '../copy-text.ts'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** Says which scopes the token lacks, and the command that creates a token that has them. */
function MissingScopes({ scopes }: { scopes: readonly string[] }) {
  const { tokenInfo } = useGallery()
  const [copied, setCopied] = useState<boolean | null>(null)
  const wanted = [...tokenInfo.scopes, ...scopes].join(',')
  const command = `npx mediabucket token create --bucket ${tokenInfo.bucket} --scope ${wanted}`
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
export function MissingScopePage() {
  const { router } = useGallery()
  const section = router.section.value
  if (section === null) return null
  return (
    <>
      <SectionHead title={strings.sections[section]} about="">
        {null}
      </SectionHead>
      <MissingScopes scopes={[`${section}:manage`]} />
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
