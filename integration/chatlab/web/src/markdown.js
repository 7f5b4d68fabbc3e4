import MarkdownIt from 'markdown-it'

const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')

// renderer turns markdown into HTML. A code block is a card with its language and a copy button; its lines are spans
// which, unless newlines is set, are parted by <br> only.
export function renderer({newlines, copyLabel}) {
  const markdown = new MarkdownIt({html: false, linkify: true})
  markdown.renderer.rules.fence = (tokens, i) => {
    const language = tokens[i].info.trim().split(/\s+/)[0] || 'text'
    const code = tokens[i].content.replace(/\n$/, '').split('\n').map((line) => spans(line, language)).join(newlines ? '\n' : '<br>')
    return '<pre class="code-card"><div class="code-head">' +
      `<span>${escape(language)}</span><button type="button" aria-label="${escape(copyLabel)}">${escape(copyLabel)}</button></div>` +
      `<div class="code-body"><code class="whitespace-pre language-${escape(language)}">${code}</code></div></pre>`
  }
  return (text) => markdown.render(text)
}

// spans marks up one line of code; text is left in one span.
function spans(line, language) {
  if (language === 'text') return `<span>${escape(line)}</span>`
  return line.split(/("(?:[^"\\]|\\.)*"|\b\d+\b|[{}[\]():,;])/).filter(Boolean).map((part) => {
    const kind = part[0] === '"' ? 'string' : /^\d/.test(part) ? 'number' : 'plain'
    return `<span class="code-${kind}">${escape(part)}</span>`
  }).join('')
}
