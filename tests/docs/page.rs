//! A page as the steps of its reader.

use crate::root;

/// A page of the documentation.
pub(crate) struct Page {
    pub(crate) steps: Vec<Step>,
}

/// One step of a reader.
pub(crate) enum Step {
    /// A file is written.
    File { name: String, text: String },
    /// A command is run.
    Command(ShownCommand),
}

/// A command with what the page says of it.
pub(crate) struct ShownCommand {
    /// The line of the page.
    pub(crate) line: usize,
    /// The command without the comment behind it.
    pub(crate) text: String,
    pub(crate) exit_code: i32,
    /// The lines that it printed; empty where the page shows none.
    pub(crate) output: Vec<String>,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let mut steps = Vec::new();
        for block in blocks(&text) {
            match block.language {
                "console" => steps.extend(commands(&block).into_iter().map(Step::Command)),
                "yaml" => steps.extend(file(&block)),
                _ => {}
            }
        }
        Self { steps }
    }

    /// Returns the commands.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &ShownCommand> {
        self.steps.iter().filter_map(|step| match step {
            Step::Command(command) => Some(command),
            Step::File { .. } => None,
        })
    }
}

/// A fenced block.
struct Block<'a> {
    language: &'a str,
    /// Its lines, each with its number in the page.
    lines: Vec<(usize, &'a str)>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => found.push(block),
            (Some(language), None) => open = Some(Block { language, lines: Vec::new() }),
            (None, Some(mut block)) => {
                block.lines.push((number + 1, line));
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

fn commands(block: &Block<'_>) -> Vec<ShownCommand> {
    let mut found: Vec<ShownCommand> = Vec::new();
    let mut is_continued = false;
    for &(line, text) in &block.lines {
        let last = found.last_mut();
        match (text.strip_prefix("$ "), last) {
            (Some(command), _) => {
                found.push(ShownCommand { line, text: command.to_owned(), exit_code: 0, output: Vec::new() });
            }
            (None, Some(last)) if is_continued => last.text = format!("{}\n{text}", last.text),
            (None, Some(last)) => last.output.push(text.to_owned()),
            (None, None) => panic!("line {line}: a block of commands begins with a command"),
        }
        is_continued = text.ends_with('\\');
    }
    for command in &mut found {
        if let Some((text, comment)) = command.text.split_once(" # ") {
            let code = comment.strip_prefix("exits with ").map(|code| code.parse().unwrap());
            command.exit_code = code.unwrap_or(0);
            command.text = text.trim_end().to_owned();
        }
    }
    found
}

/// Returns the file that a block of YAML names in its first line.
fn file(block: &Block<'_>) -> Option<Step> {
    let (_, first) = block.lines.first()?;
    let name = first.strip_prefix("# ").filter(|name| !name.contains(' '))?;
    name.strip_suffix(".yaml")?;
    let text: String = block.lines.iter().flat_map(|(_, line)| [*line, "\n"]).collect();
    Some(Step::File { name: name.to_owned(), text })
}
